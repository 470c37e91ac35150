"""The compute service: what it remembers, how long it waits, and whom it talks to."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wiretap import Eavesdropper

from horovod.runner.common.service._channel import StrangerError, greet
from horovod.runner.common.service._guests import RefusalLog
from horovod.runner.common.service._messages import MAX_BODY_BYTES, receive_message, send_message
from horovod.runner.common.service.compute_service import ComputeClient, ComputeService
from horovod.runner.common.util.network import NoValidAddressesFound
from horovod.runner.common.util.secret import compute_digest, make_secret_key
from horovod.runner.common.util.timeout import TimeoutException

KEY = make_secret_key()
WAIT_SECONDS = 20


@pytest.fixture
def service() -> Iterator[ComputeService]:
    made = ComputeService(2, 2, KEY)
    yield made
    made.shutdown()


@pytest.fixture
def client(service: ComputeService) -> ComputeClient:
    return ComputeClient(service.addresses(), KEY)


def meanwhile(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Call the function in a thread; the result waits for its result."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)), daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()
        return results[0]

    return result


def loopback(service: ComputeService) -> tuple[str, int]:
    return service.addresses()["lo"][0]


def assert_closed(connection: socket.socket) -> None:
    """The other end says nothing; it may close before it has read everything."""
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""


def test_counts_must_be_positive():
    with pytest.raises(ValueError, match="number of dispatchers must be larger than 0, got 0"):
        ComputeService(0, 1, KEY)
    with pytest.raises(ValueError, match="workers per dispatcher must be larger than 0, got -1"):
        ComputeService(1, -1, KEY)


def test_it_listens_on_the_interfaces_that_were_named():
    service = ComputeService(1, 1, KEY, nics=["lo"])
    assert [host for pairs in service.addresses().values() for host, _ in pairs] == ["127.0.0.1"]
    service.shutdown()
    with pytest.raises(ValueError, match="nosuch"):
        ComputeService(1, 1, KEY, nics=["nosuch"])


def test_a_dispatcher_is_found_by_those_who_wait_and_those_who_come_later(client, service):
    address = meanwhile(
        ComputeClient(service.addresses(), KEY).wait_for_dispatcher_registration, 1, WAIT_SECONDS
    )

    client.register_dispatcher(1, "grpc://10.0.0.1:5")
    client.register_dispatcher(1, "grpc://10.0.0.1:5")  # the same again

    assert address() == "grpc://10.0.0.1:5"
    assert client.wait_for_dispatcher_registration(1, 0) == "grpc://10.0.0.1:5"
    text = (
        "Dispatcher with id 1 has already been registered under different address "
        r"grpc://10\.0\.0\.1:5: grpc://10\.0\.0\.2:5"
    )
    with pytest.raises(ValueError, match=f"^{text}$"):
        client.register_dispatcher(1, "grpc://10.0.0.2:5")
    text = (
        r"Timed out waiting for dispatcher 0 to register\. Try to find out what takes the dispatcher so long "
        r"to register or increase timeout\. Timeout after 0\.1 seconds\."
    )
    with pytest.raises(TimeoutException, match=f"^{text}$"):
        client.wait_for_dispatcher_registration(0, 0.1)


def test_workers_are_counted_for_each_dispatcher(client):
    client.register_worker_for_dispatcher(0, 0)
    client.register_worker_for_dispatcher(1, 1)
    client.register_worker_for_dispatcher(1, 1)
    text = (
        r"Timed out waiting for workers for dispatcher 1 to register\. Try to find out what takes the "
        r"workers so long to register or increase timeout\. Timeout after 0\.1 seconds\."
    )
    with pytest.raises(TimeoutException, match=f"^{text}$"):
        client.wait_for_dispatcher_worker_registration(1, 0.1)

    client.register_worker_for_dispatcher(1, 2)

    client.wait_for_dispatcher_worker_registration(1, WAIT_SECONDS)
    with pytest.raises(TimeoutException, match="workers for dispatcher 0"):
        client.wait_for_dispatcher_worker_registration(0, 0.1)


def test_it_runs_until_it_is_ended(client):
    assert client.is_running()

    client.shutdown()

    client._wait_for_shutdown_thread.join(WAIT_SECONDS)
    assert not client.is_running()


def test_a_service_that_is_gone_does_not_run():
    service = ComputeService(1, 1, KEY)
    client = ComputeClient(service.addresses(), KEY)

    service.shutdown()

    assert not client.is_running()


def test_dispatchers_that_there_are_not(client):
    calls = [
        lambda: client.register_dispatcher(2, "x"),
        lambda: client.wait_for_dispatcher_registration(-1, 1),
        lambda: client.register_worker_for_dispatcher(5, 0),
        lambda: client.wait_for_dispatcher_worker_registration(2, 1),
    ]
    for call in calls:
        with pytest.raises(IndexError, match="between 0 and 1"):
            call()


def test_arguments_of_a_wrong_kind(client):
    with pytest.raises(ValueError, match="dispatcher must be an integer"):
        client.register_dispatcher("0", "x")
    with pytest.raises(ValueError, match="address must be a string"):
        client.register_dispatcher(0, 7)
    with pytest.raises(ValueError, match="no call"):
        client._ask("delete_everything")


def test_shutdown_wakes_those_who_wait_for_it(client, service):
    waiting = [meanwhile(ComputeClient(service.addresses(), KEY).wait_for_shutdown) for _ in range(3)]

    client.shutdown()

    for wait in waiting:
        wait()
    client.wait_for_shutdown()


def test_a_service_that_goes_away_is_an_error(client, service):
    service.shutdown()

    with pytest.raises(ConnectionError, match="does not answer any more"):
        client.register_worker_for_dispatcher(0, 0)


def test_another_key_finds_nobody(service, monkeypatch):
    monkeypatch.setattr("horovod.runner.common.service._client._PROBE_SECONDS", 0.0)
    with pytest.raises(NoValidAddressesFound, match="Compute service does not answer"):
        ComputeClient(service.addresses(), make_secret_key())


@pytest.mark.parametrize("first", [b"x" * 64, b"GET / HTTP/1.1\r\n\r\n" + b"x" * 60, b"\x80\x04" + b"." * 62])
def test_a_stranger_gets_no_byte_back(service, first):
    with socket.create_connection(loopback(service), WAIT_SECONDS) as connection:
        connection.sendall(first)

        assert_closed(connection)


def test_what_was_recorded_cannot_be_used_again(service, client):
    recorded = bytearray()

    class Recorder:
        def __init__(self, connection: socket.socket) -> None:
            self._connection = connection
            self.recv = connection.recv

        def sendall(self, data: bytes) -> None:
            recorded.extend(data)
            self._connection.sendall(data)

    with socket.create_connection(loopback(service), WAIT_SECONDS) as connection:
        channel = greet(Recorder(connection), KEY)
        send_message(channel, {"call": "shutdown"})
        receive_message(channel)
    service._roster._is_over = False

    with socket.create_connection(loopback(service), WAIT_SECONDS) as connection:
        connection.sendall(recorded)
        assert_closed(connection)

    assert client._ask("wait_for_shutdown", seconds=0) is False


def test_questions_that_come_in_the_place_of_others_are_not_answered(service):
    with socket.create_connection(loopback(service), WAIT_SECONDS) as connection:
        greet(connection, KEY)
        connection.sendall(bytes(1000))

        assert_closed(connection)


def test_long_messages_are_refused_before_they_are_read(service):
    with socket.create_connection(loopback(service), WAIT_SECONDS) as connection:
        channel = greet(connection, KEY)
        with contextlib.suppress(ConnectionError):  # it may hang up at the head
            channel.send(0, bytes(MAX_BODY_BYTES + 1))

        assert_closed(connection)


def test_nothing_of_question_and_answer_can_be_read_on_the_way(service):
    with Eavesdropper(loopback(service)) as tap:
        client = ComputeClient({"lo": [tap.address]}, KEY)
        client.register_dispatcher(0, "grpc://a-name-of-a-host:5")
        assert client.wait_for_dispatcher_registration(0, WAIT_SECONDS) == "grpc://a-name-of-a-host:5"
        heard = tap.heard()

    assert sum(len(one) for one in heard) > 500
    for word in (b"call", b"register", b"a-name-of-a-host", b"result", b"Compute"):
        assert not any(word in one for one in heard)


def test_a_service_that_is_none(monkeypatch):
    monkeypatch.setattr("horovod.runner.common.service._client._PROBE_SECONDS", 0.0)
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            number = connection.recv(64)[:32]
            body = json.dumps({"result": "probe"}).encode()
            connection.sendall(number + compute_digest(b"guess", number) + body)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()

    with pytest.raises(NoValidAddressesFound, match="another key"):
        ComputeClient({"lo": [listener.getsockname()]}, KEY)
    thread.join(WAIT_SECONDS)
    listener.close()


def test_many_silent_strangers_do_not_keep_others_out(service):
    strangers = [socket.create_connection(loopback(service), WAIT_SECONDS) for _ in range(50)]
    begin = time.monotonic()

    ComputeClient(service.addresses(), KEY).register_worker_for_dispatcher(0, 0)

    assert time.monotonic() - begin < WAIT_SECONDS
    for stranger in strangers:
        stranger.close()


class Tricklers:
    """Connections that send a byte now and then, and so keep every single wait short."""

    def __init__(self, address: tuple[str, int], count: int) -> None:
        self._sockets = [socket.create_connection(address, WAIT_SECONDS) for _ in range(count)]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._trickle, daemon=True)
        self._thread.start()

    def _trickle(self) -> None:
        while not self._is_over.wait(0.02):
            for one in self._sockets:
                with contextlib.suppress(OSError):
                    one.send(b"x")

    def __enter__(self) -> list[socket.socket]:
        return self._sockets

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(WAIT_SECONDS)
        for one in self._sockets:
            one.close()


def test_bytes_that_trickle_do_not_lengthen_the_greeting(monkeypatch, caplog):
    monkeypatch.setattr("horovod.runner.common.service._server._GREETING_SECONDS", 0.3)
    service = ComputeService(2, 2, KEY)

    # 64 bytes at 20 ms take 1.3 s, and each of them would start the 0.3 s anew.
    with Tricklers(loopback(service), 1) as (slow,):
        assert_closed(slow)

    assert "of 64 bytes came in time" in caplog.text
    service.shutdown()


def test_the_oldest_silent_stranger_makes_room(monkeypatch):
    monkeypatch.setattr("horovod.runner.common.service._server._MOST_CONNECTIONS", 8)
    monkeypatch.setattr("horovod.runner.common.service._server._GREETING_SECONDS", 600.0)
    crowded = ComputeService(2, 2, KEY)

    with Tricklers(loopback(crowded), 20) as strangers:
        ComputeClient(crowded.addresses(), KEY).register_worker_for_dispatcher(0, 0)
        assert_closed(strangers[0])

    crowded.shutdown()


def test_strangers_cannot_keep_the_service_from_closing(monkeypatch):
    monkeypatch.setattr("horovod.runner.common.service._server._MOST_CONNECTIONS", 4)
    monkeypatch.setattr("horovod.runner.common.service._server._GREETING_SECONDS", 600.0)
    crowded = ComputeService(2, 2, KEY)

    with Tricklers(loopback(crowded), 12):
        begin = time.monotonic()
        crowded.shutdown()

    assert time.monotonic() - begin < 5.0


def test_refusals_do_not_fill_the_log(caplog):
    log = RefusalLog("compute service")

    for _ in range(1000):
        log.note("10.0.0.7", "the other end has another key")

    assert log.count == 1000
    assert len(caplog.records) == 9
    text = "compute service: a connection from 10.0.0.7 was refused: the other end has another key"
    assert caplog.messages[0] == text
    assert caplog.messages[-1] == "compute service: 1 more connections were refused, 9 in all"


def test_the_greeting_needs_the_key():
    left, right = socket.socketpair()
    right.close()
    with left, pytest.raises((StrangerError, BrokenPipeError)):
        greet(left, KEY)
