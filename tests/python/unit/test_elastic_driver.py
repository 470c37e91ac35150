"""ElasticDriver with workers that are functions."""

from __future__ import annotations

import socket
import threading
import time
from unittest import mock

import pytest

from horovod.runner.common.util.hosts import INVALID_SLOT_INFO
from horovod.runner.common.util.timeout import TimeoutException
from horovod.runner.elastic import driver as driver_module
from horovod.runner.elastic.constants import RESET_LIMIT_EXCEEDED_MESSAGE
from horovod.runner.elastic.discovery import FixedHosts, HostDiscovery
from horovod.runner.elastic.driver import ElasticDriver
from horovod.runner.elastic.rendezvous import create_rendezvous_handler
from horovod.runner.elastic.settings import ElasticSettings
from horovod.runner.elastic.worker import (
    HostUpdateResult,
    WorkerNotificationManager,
    describe_service,
    read_service,
)
from horovod.runner.http import http_server
from horovod.runner.http.http_client import get_value, put_value
from horovod.runner.http.http_server import KVStoreHandler, KVStoreHTTPServer, RendezvousServer
from horovod.runner.util.network import get_local_host_addresses

LIMIT_SECONDS = 30


@pytest.fixture(autouse=True)
def looks_often(monkeypatch):
    monkeypatch.setattr(driver_module, "DISCOVER_HOSTS_FREQUENCY_SECS", 0.01)


@pytest.fixture
def make_driver():
    made = []

    def make(discovery, min_num_proc=2, max_num_proc=4, rendezvous=None, **kwargs):
        driver = ElasticDriver(rendezvous or mock.Mock(), discovery, min_num_proc, max_num_proc, **kwargs)
        made.append(driver)
        return driver

    yield make
    for driver in made:
        driver.stop()


def results_of(driver):
    found = []
    thread = threading.Thread(target=lambda: found.append(driver.get_results()), daemon=True)
    thread.start()
    thread.join(LIMIT_SECONDS)
    assert found, "the workers have not ended"
    return found[0]


def wait_until(condition):
    end = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_every_slot_gets_a_worker_with_its_place(make_driver):
    driver = make_driver(FixedHosts({"host-1": 2, "host-2": 2}))
    driver.wait_for_available_slots(2)
    seen = {}

    def worker(slot_info, events):
        driver.record_ready(slot_info.hostname, slot_info.local_rank)
        seen[slot_info.rank] = (slot_info, driver.get_slot_info(slot_info.hostname, slot_info.local_rank))
        return 0, time.time()

    driver.start(2, worker)
    results = results_of(driver)

    assert {name: code for name, (code, _) in results.worker_results.items()} == {
        "host-1[0]": 0,
        "host-1[1]": 0,
        "host-2[0]": 0,
        "host-2[1]": 0,
    }
    assert results.error_message is None
    assert driver.finished()
    assert sorted(seen) == [0, 1, 2, 3]
    assert all(before == after for before, after in seen.values())


def test_numbers_of_workers_have_their_old_names_too(looks_often):
    rendezvous = mock.Mock()
    with pytest.warns(DeprecationWarning, match="min_np is deprecated, use min_num_proc"):
        driver = ElasticDriver(rendezvous, FixedHosts({"one": 2}), min_np=2, max_num_proc=2)
    try:
        with pytest.warns(DeprecationWarning, match="min_np"):
            assert driver.wait_for_available_slots(min_np=2).count_available_slots() == 2
        with pytest.raises(TypeError, match="old name of min_num_proc; give one"):
            driver.wait_for_available_slots(min_np=1, min_num_proc=2)
        with pytest.warns(DeprecationWarning, match="np is deprecated, use num_proc"):
            driver.start(np=2, create_worker_fn=lambda slot, events: (0, time.time()))
        assert driver.get_results().worker_results.keys() == {"one[0]", "one[1]"}
    finally:
        driver.stop()
    with pytest.warns(DeprecationWarning, match="max_np"):
        settings = ElasticSettings(
            None, min_num_proc=1, max_np=3, elastic_timeout=None, reset_limit=None, num_proc=1
        )
    assert settings.max_num_proc == 3


def test_a_failed_worker_takes_its_host_with_it_and_the_others_go_on(make_driver):
    driver = make_driver(FixedHosts({"host-1": 2, "host-2": 2}))
    ranks = {}

    def worker(slot_info, events):
        if slot_info.hostname == "host-1":
            if slot_info.local_rank == 0:
                return 1, time.time()
            assert any_set(events)  # ended with its host
            return 1, time.time()
        driver.record_ready(slot_info.hostname, slot_info.local_rank)
        ranks[slot_info.local_rank] = driver.get_slot_info(slot_info.hostname, slot_info.local_rank)
        return 0, time.time()

    def any_set(events):
        driver.record_ready("host-1", 1)
        wait_until(lambda: any(event.is_set() for event in events))
        return True

    driver.start(2, worker)
    results = results_of(driver)

    assert driver._host_manager.is_blacklisted("host-1")
    assert {name: code for name, (code, _) in results.worker_results.items()} == {
        "host-2[0]": 0,
        "host-2[1]": 0,
    }
    assert [(ranks[i].rank, ranks[i].size) for i in (0, 1)] == [(0, 2), (1, 2)]
    assert driver.get_slot_info("host-1", 0) == INVALID_SLOT_INFO


def test_the_job_ends_when_all_have_failed(make_driver):
    driver = make_driver(FixedHosts({"host-1": 2, "host-2": 2}))

    driver.start(2, lambda slot_info, events: (1, time.time()))

    results = results_of(driver).worker_results
    assert [code for code, _ in results.values()] == [1] * 4


def test_new_hosts_get_workers_and_the_old_ones_their_ranks(make_driver):
    hosts = FixedHosts({"host-1": 2})
    driver = make_driver(hosts)
    started = []

    def worker(slot_info, events):
        started.append((slot_info.hostname, slot_info.local_rank))
        if slot_info.hostname == "host-1":
            hosts.set({"host-2": 1, "host-1": 2})
            wait_until(lambda: "host-2" in driver._host_manager.current_hosts.available_hosts)
            driver.record_ready(slot_info.hostname, slot_info.local_rank)
            assert driver.get_slot_info("host-1", slot_info.local_rank).size == 3
        return 0, time.time()

    driver.start(2, worker)
    results = results_of(driver)

    assert sorted(started) == [("host-1", 0), ("host-1", 1), ("host-2", 0)]
    assert len(results.worker_results) == 3
    assert driver.get_coordinator_info().hostname == "host-1"
    assert driver.world_size() == 3
    assert driver.local_size("host-1") == 2
    assert not driver.has_rank_assignment("host-2", 1)


@pytest.mark.parametrize("limit", [0, 2])
def test_a_job_is_not_reset_more_often_than_allowed(make_driver, limit):
    driver = make_driver(FixedHosts({"host-1": 2}), reset_limit=limit)

    def worker(slot_info, events):
        for _ in range(limit + 1):
            driver.record_ready(slot_info.hostname, slot_info.local_rank)
        return 1, time.time()

    driver.start(2, worker)

    assert results_of(driver).error_message == RESET_LIMIT_EXCEEDED_MESSAGE.format(limit)


def test_at_least_one_host_must_stay(make_driver):
    hosts = FixedHosts({"host-1": 2})
    driver = make_driver(hosts)

    def worker(slot_info, events):
        hosts.set({"host-2": 2})
        wait_until(lambda: driver._host_manager.current_hosts.available_hosts == {"host-2"})
        driver.record_ready(slot_info.hostname, slot_info.local_rank)
        return 1, time.time()

    driver.start(2, worker)

    results_of(driver)
    assert driver.finished()


def test_waiting_for_slots_has_an_end(make_driver):
    driver = make_driver(FixedHosts({"host-1": 1}), timeout=0.1)

    with pytest.raises(TimeoutException, match="at least 2"):
        driver.wait_for_available_slots(2)
    with pytest.raises(TimeoutException, match="2 hosts"):
        driver.wait_for_available_slots(1, min_hosts=2)
    driver.stop()
    with pytest.raises(RuntimeError, match="shutdown"):
        driver.wait_for_available_slots(2)


def test_a_discovery_that_fails_at_first_ends_the_job_and_later_is_tried_again(make_driver):
    class Failing(HostDiscovery):
        def __init__(self, *answers):
            self.answers = list(answers)

        def find_available_hosts_and_slots(self):
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

    broken = make_driver(Failing(RuntimeError("no such script")))
    with pytest.raises(RuntimeError, match="shutdown"):
        broken.wait_for_available_slots(2)

    flapping = make_driver(Failing({}, RuntimeError("just now"), {"host-1": 2}))
    assert flapping.wait_for_available_slots(2).count_available_slots() == 2


def test_rank_zero_hears_of_hosts_that_change_its_world():
    hosts = FixedHosts({"host-1": 2})
    heard = []
    client = mock.Mock()
    client.notify_hosts_updated.side_effect = lambda timestamp, result: heard.append(result)
    with mock.patch.object(ElasticDriver, "get_worker_client", return_value=client):
        driver = ElasticDriver(mock.Mock(), hosts, 2, 3)
        driver.start(2, lambda slot_info, events: (int(events[0].wait(LIMIT_SECONDS)), 0.0))
        hosts.set({"host-1": 2, "host-2": 1})
        wait_until(lambda: heard == [HostUpdateResult.added])
        # The world is full: another host changes nothing that ranks would see.
        hosts.set({"host-1": 2})
        wait_until(lambda: driver._host_manager.current_hosts.available_hosts == {"host-1"})
        driver.stop()

    assert heard == [HostUpdateResult.added]


def test_workers_ask_over_http_and_are_told():
    rendezvous = RendezvousServer()
    driver = ElasticDriver(rendezvous, FixedHosts({"host-1": 1, "host-2": 1}), 2, 2)
    port = rendezvous.start(create_rendezvous_handler(driver))
    manager, listener = WorkerNotificationManager(), mock.Mock()
    manager.register_listener(listener)
    places = {}

    def worker(slot_info, events):
        key = f"{slot_info.hostname}:{slot_info.local_rank}"
        places[slot_info.rank] = get_value("127.0.0.1", port, "rank_and_size", key).decode()
        events[0].wait(LIMIT_SECONDS)
        return 0, time.time()

    manager.init("127.0.0.1", port, None, "host-1", 0)
    driver.start(2, worker)
    wait_until(lambda: len(places) == 2)
    driver.get_worker_client(driver.get_coordinator_info()).notify_hosts_updated(7, HostUpdateResult.mixed)
    driver.stop()
    manager._service.shutdown()

    assert places == {0: "0,2,0,1,0,2", 1: "1,2,0,1,1,2"}
    listener.on_hosts_updated.assert_called_once_with(7, HostUpdateResult.mixed)


def reaches(address):
    try:
        socket.create_connection(address, LIMIT_SECONDS).close()
    except ConnectionRefusedError:
        return False
    return True


def test_the_store_answers_at_the_addresses_of_its_host_and_at_no_other():
    rendezvous = RendezvousServer()
    port = rendezvous.start()
    own = sorted(get_local_host_addresses())
    try:
        for number, host in enumerate(own):
            put_value(host, port, "scope", host, b"%d" % number)
        for number, host in enumerate(own):
            assert get_value(own[0], port, "scope", host) == b"%d" % number
        assert not reaches(("127.99.99.99", port)), "which a wildcard would take"
    finally:
        rendezvous.stop()
    assert not any(reaches((host, port)) for host in own)


def test_who_asks_for_a_wildcard_has_it():
    server = KVStoreHTTPServer(("0.0.0.0", 0), KVStoreHandler)
    assert reaches(("127.99.99.99", server.server_port))
    server.server_close()


def test_a_port_is_taken_at_all_addresses_or_at_none(monkeypatch):
    monkeypatch.setattr(http_server, "_own_addresses", lambda: ["127.0.0.1", "127.99.99.99"])
    with socket.create_server(("127.99.99.99", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            KVStoreHTTPServer(("", port), KVStoreHandler)
        assert not reaches(("127.0.0.1", port))


def test_what_a_worker_says_of_its_service_is_read_and_nothing_else():
    value = describe_service({"lo": [("127.0.0.1", 5)]}, b"key")

    assert read_service(value) == ({"lo": [("127.0.0.1", 5)]}, b"key")
    for garbage in (b"", b"[]", b'{"addresses": 3}', b'{"addresses": {"lo": [1]}, "key": "00"}'):
        with pytest.raises(ValueError):
            read_service(garbage)
