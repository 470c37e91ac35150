"""Which hosts there are, which of them may be used, and in what order."""

from __future__ import annotations

import time
from pathlib import Path
from unittest import mock

import pytest

from horovod.runner.elastic import discovery
from horovod.runner.elastic.discovery import (
    FixedHosts,
    HostDiscoveryScript,
    HostManager,
    HostState,
    cooldown_seconds,
)
from horovod.runner.elastic.worker import HostUpdateResult


def script(tmp_path, text):
    path = tmp_path / "hosts.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_script_prints_hosts_with_and_without_slots(tmp_path):
    found = HostDiscoveryScript(script(tmp_path, "echo b:3; echo; echo a; echo b:3"), 2)

    assert found.find_available_hosts_and_slots() == {"b": 3, "a": 2}
    assert list(found.find_available_hosts_and_slots()) == ["b", "a"]


@pytest.mark.parametrize("printed", ["", "a", "a:3", "a\nb:4\n"])
def test_what_a_script_prints_may_come_from_elsewhere(printed):
    slots = mock.sentinel.slots
    known = HostDiscoveryScript("hosts.sh", slots)
    known._execute_discovery_script = lambda: printed
    expected = {"": {}, "a": {"a": slots}, "a:3": {"a": 3}, "a\nb:4\n": {"a": slots, "b": 4}}

    assert known.find_available_hosts_and_slots() == expected[printed]


@pytest.mark.parametrize("text", ["exit 3", "echo a:many", "echo a", "echo :2"])
def test_a_script_that_fails_or_prints_something_else_is_an_error(tmp_path, text):
    with pytest.raises(RuntimeError, match=r"hosts\.sh"):
        HostDiscoveryScript(script(tmp_path, text), None).find_available_hosts_and_slots()


def test_fixed_hosts_change_when_they_are_set():
    hosts = FixedHosts({"a": 2})
    hosts.set({"b": 1})

    assert hosts.find_available_hosts_and_slots() == {"b": 1}


def test_changes_are_added_removed_or_both():
    hosts = FixedHosts({})
    manager = HostManager(hosts)
    expected = [
        ({"a": 2}, HostUpdateResult.added),
        ({"a": 2}, HostUpdateResult.no_update),
        ({"a": 3}, HostUpdateResult.added),
        ({"a": 1}, HostUpdateResult.removed),
        ({"a": 1, "b": 1}, HostUpdateResult.added),
        ({"b": 1}, HostUpdateResult.removed),
        ({"c": 1}, HostUpdateResult.mixed),
        ({"c": 1, "d": 0}, HostUpdateResult.no_update),
    ]
    for slots, result in expected:
        hosts.set(slots)

        assert manager.update_available_hosts() == result, slots

    assert manager.current_hosts.available_hosts == {"c"}


def test_old_hosts_keep_their_place_before_new_ones():
    hosts = FixedHosts({"b": 1, "c": 1})
    manager = HostManager(hosts)
    manager.update_available_hosts()
    hosts.set({"a": 1, "c": 1, "b": 1})
    manager.update_available_hosts()
    assert manager.current_hosts.host_assignment_order == ["b", "c", "a"]

    hosts.set({"d": 4, "a": 1, "c": 1})
    manager.update_available_hosts()

    assert manager.current_hosts.host_assignment_order == ["c", "a", "d"]
    assert manager.current_hosts.count_available_slots() == 6
    assert manager.current_hosts.get_slots("gone") == 0


def test_a_host_that_failed_is_shunned_at_once_and_for_ever():
    hosts = FixedHosts({"a": 2, "b": 2})
    manager = HostManager(hosts)
    manager.update_available_hosts()
    event = manager.get_host_event("a")

    manager.blacklist("a")

    assert event.is_set()
    assert manager.is_blacklisted("a")
    assert manager.current_hosts.available_hosts == {"b"}
    assert manager.current_hosts.count_available_slots() == 2
    hosts.set({"a": 3, "b": 2})
    manager.update_available_hosts()
    assert manager.current_hosts.host_assignment_order == ["b"]
    assert not manager.get_host_event("a").is_set()


def test_a_host_comes_back_as_an_added_one_when_its_time_is_over():
    manager = HostManager(FixedHosts({"a": 2, "b": 2}), cooldown_range=(10, 100))
    with mock.patch.object(discovery.time, "time", return_value=1000.0):
        manager.update_available_hosts()
        manager.blacklist("a")
        assert manager.update_available_hosts() == HostUpdateResult.no_update
    with mock.patch.object(discovery.time, "time", return_value=1019.0):
        assert manager.update_available_hosts() == HostUpdateResult.no_update
        assert manager.is_blacklisted("a")

    with mock.patch.object(discovery.time, "time", return_value=1031.0):
        assert manager.update_available_hosts() == HostUpdateResult.added

    assert manager.current_hosts.host_assignment_order == ["b", "a"]
    assert not manager.is_blacklisted("a")


def test_cooldown_doubles_and_stays_within_its_range():
    assert [cooldown_seconds(n, 10, 100, 0.0) for n in (1, 2, 3, 4, 900)] == [20, 40, 80, 100, 100]
    assert cooldown_seconds(1, 10, 100, 0.5) == 25
    assert cooldown_seconds(1, 10, 15, 1.0) == 15


def test_failures_during_the_cooldown_do_not_count():
    with mock.patch.object(discovery.time, "time", return_value=0.0):
        state = HostState((10, 1000))
        state.blacklist()
        state.blacklist()

        assert state._failures == 1


def test_settings_become_words_of_the_launcher():
    from horovod.runner import gloo_run
    from horovod.runner.elastic.settings import ElasticSettings

    limits = {
        "min_num_proc": 2,
        "max_num_proc": 4,
        "elastic_timeout": 30,
        "reset_limit": 3,
        "cooldown_range": [1, 2],
        "num_proc": 2,
    }
    said = []
    for hosts in (HostDiscoveryScript("./hosts.sh", 2), FixedHosts({"a": 1, "b": 2})):
        settings = ElasticSettings(discovery=hosts, **limits)
        with mock.patch("horovod.runner.mpi_run.run_program") as run_program:
            run_program.return_value.code = 0
            gloo_run.gloo_run_elastic(settings, {}, ["train"])
        said.append(" ".join(run_program.call_args.args[0]))
        assert run_program.call_args.args[1]["HOROVOD_ELASTIC_DISCOVERY_SECONDS"] == "1.0"

    for words in said:
        assert "--min-num-proc=2" in words
        assert "--max-num-proc=4" in words
        assert "--reset-limit=3" in words
        assert "--blacklist-cooldown-range 1 2" in words
        assert "--whole-hosts" in words
    assert "--host-discovery-script ./hosts.sh --slots-per-host 2 -- train" in said[0]
    assert "--hostfile " in said[1]
    with pytest.raises(ValueError, match="must be a HostDiscovery, got object"):
        gloo_run.gloo_run_elastic(ElasticSettings(discovery=object(), **limits), {}, ["train"])


def test_a_host_file_follows_what_a_program_finds(monkeypatch, caplog):
    from horovod.runner.elastic import driver
    from horovod.runner.elastic._host_file import HostFile

    monkeypatch.setattr(driver, "DISCOVER_HOSTS_FREQUENCY_SECS", 0.01)
    hosts = FixedHosts({"a": 1})
    with HostFile(hosts) as file:
        path = Path(file.path)
        assert path.read_text() == "a:1\n"

        hosts.set({"a": 1, "b": 2})
        _await(lambda: path.read_text() == "a:1\nb:2\n")

        hosts.find_available_hosts_and_slots = mock.Mock(side_effect=RuntimeError("no answer"))
        _await(lambda: "the hosts stay as they are known: no answer" in caplog.text)
        assert path.read_text() == "a:1\nb:2\n"
    assert not path.exists()
    assert not path.parent.exists()


def _await(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
