"""Lines between workers and the driver of an elastic job, and the process that decides, without an engine."""

import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time

import pytest
from wiretap import Eavesdropper, Wire, tcp_pair

from horovod._cluster.elastic import line as lines
from horovod._cluster.elastic.decider import Decided, Decider, Limits
from horovod._cluster.elastic.driver import ElasticDriver, Ended
from horovod._cluster.elastic.exchange import Exchange
from horovod._cluster.elastic.line import Kind, Line, LineLostError, call, take_call
from horovod._cluster.elastic.relay import hello
from horovod._cluster.elastic.seat import Seat, is_farewell, variables_of
from horovod._core.errors import REMOVED
from horovod.common.exceptions import HorovodInternalError
from horovod.runner.common.service._channel import greet, welcome
from horovod.runner.common.service._guests import RecentNumbers
from horovod.runner.common.service._reception import Guest

KEY = bytes(range(32))
SECONDS = 30


def next_of(items, kind):
    return next(item for item in iter(lambda: items.get(timeout=SECONDS), None) if isinstance(item, kind))


@pytest.fixture
def wire():
    """A connection whose bytes are in the hands of the test."""
    made = Wire(KEY)
    yield made
    made.close()


@pytest.fixture
def exchange():
    """Where workers call, and what was heard."""
    heard = queue.Queue()
    made = Exchange(KEY, ["lo"], heard)
    yield made, heard
    made.close()


def assert_closed(connection):
    """The other end says nothing; it may close before it has read everything."""
    with contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""


def loopback(exchange):
    return exchange.addresses()["lo"][0]


def test_a_line_carries_messages_both_ways():
    near, far = tcp_pair()
    greeted = []
    thread = threading.Thread(target=lambda: greeted.append(greet(near, KEY)))
    thread.start()
    channel = welcome(far, KEY, time.monotonic() + SECONDS, RecentNumbers())
    thread.join(SECONDS)
    caller = Line(greeted[0])
    caller.send(Kind.HELLO, hello("7"))
    called, words = take_call(Guest(channel, time.monotonic() + SECONDS, lambda: None))

    for number in range(3):
        caller.send(Kind.PACKET, b"%d" % number)
    called.send(Kind.START, b"x" * 1_000_000)

    assert words == hello("7")
    assert [called.receive(SECONDS) for _ in range(3)] == [(Kind.PACKET, b"%d" % at) for at in range(3)]
    assert caller.receive(SECONDS) == (Kind.START, b"x" * 1_000_000)
    caller.close()
    with pytest.raises(LineLostError, match="ended"):
        called.receive(SECONDS)
    called.close()


@pytest.mark.parametrize("change", ["flipped", "dropped", "repeated", "swapped"])
def test_a_line_ends_when_messages_are_changed_on_their_way(wire, change):
    frames = [wire.taken(Kind.PACKET, b"packet %d" % at) for at in range(3)]
    flipped = bytes([*frames[1][:-1], frames[1][-1] ^ 1])
    passed = {
        "flipped": [frames[0], flipped],
        "dropped": [frames[0], frames[2]],
        "repeated": [frames[0], frames[0]],
        "swapped": [frames[0], frames[2], frames[1]],
    }[change]
    wire.of_called.sendall(b"".join(passed))

    line = Line(wire.called)

    assert line.receive(SECONDS) == (Kind.PACKET, b"packet 0")
    with pytest.raises(LineLostError, match="message 1 is not as it was sent: it was changed on its way"):
        line.receive(SECONDS)


def test_nothing_that_worker_and_driver_say_can_be_read_on_the_way(exchange):
    driver, heard = exchange
    said = [(Kind.HELLO, hello("a-name-of-a-host")), (Kind.PACKET, b"of the core"), (Kind.RESULT, b"pickle")]
    with Eavesdropper(loopback(driver)) as tap:
        worker = call({"lo": [tap.address]}, KEY)
        for kind, body in said:
            worker.send(kind, body)
        assert [heard.get(timeout=SECONDS).body for _ in said] == [body for _, body in said]
        assert driver.send("a-name-of-a-host", Kind.START, b"the store is at 10.0.0.1")
        assert worker.receive(SECONDS) == (Kind.START, b"the store is at 10.0.0.1")
        passed = tap.heard()
        worker.close()

    assert [len(one) > 64 for one in passed] == [True, True]
    for word in (b"caller", b"a-name-of-a-host", b"of the core", b"pickle", b"store"):
        assert not any(word in one for one in passed)


def test_a_recorded_call_gets_no_byte(exchange, caplog):
    driver, heard = exchange
    with Eavesdropper(loopback(driver)) as tap:
        worker = call({"lo": [tap.address]}, KEY)
        worker.send(Kind.HELLO, hello("7"))
        assert heard.get(timeout=SECONDS).kind is Kind.HELLO
        recorded = tap.heard()[0]
        worker.close()
    assert heard.get(timeout=SECONDS).kind is None

    for _ in range(3):
        with socket.create_connection(loopback(driver), SECONDS) as stranger:
            stranger.sendall(recorded)
            assert_closed(stranger)

    assert heard.empty()
    refusal = "elastic driver: a connection from 127.0.0.1 was refused: the other end repeats"
    assert caplog.text.count(refusal) == 3


@pytest.mark.parametrize("has_greeted", [False, True])
def test_a_call_that_trickles_has_one_deadline(monkeypatch, caplog, has_greeted):
    monkeypatch.setattr("horovod._cluster.elastic.exchange._GREETING_SECONDS", 0.5)
    driver = Exchange(KEY, ["lo"], queue.Queue())
    with socket.create_connection(loopback(driver), SECONDS) as slow:
        if has_greeted:
            greet(slow, KEY)
        # 64 bytes of a greeting take 3 s at this pace, the 21 of a sealed head more than one.
        slow.settimeout(0.05)
        is_open = True
        while is_open:
            try:
                slow.sendall(b"x")
                is_open = slow.recv(1) != b""
            except TimeoutError:
                pass
            except ConnectionError:
                is_open = False
    driver.close()

    assert f"of {21 if has_greeted else 64} bytes came in time" in caplog.text


def test_a_call_says_little_before_it_is_known(exchange, caplog):
    driver, _ = exchange
    with contextlib.closing(call(driver.addresses(), KEY)) as worker:
        with contextlib.suppress(LineLostError):  # it may hang up at the head
            worker.send(Kind.HELLO, bytes((64 << 10) + 1))

        with pytest.raises(LineLostError):
            worker.receive(SECONDS)

    assert "announces 65537 bytes, at most 65536 are taken" in caplog.text


@pytest.mark.parametrize("words", [b"[]", b"{}", b"garbage", b'{"caller": ""}'])
def test_a_call_has_to_say_who_it_is(exchange, words):
    driver, heard = exchange
    with contextlib.closing(call(driver.addresses(), KEY)) as worker:
        worker.send(Kind.HELLO, words)

        with pytest.raises(LineLostError):
            worker.receive(SECONDS)

    assert heard.empty()


def test_silent_strangers_make_room_for_a_worker(monkeypatch):
    monkeypatch.setattr("horovod._cluster.elastic.exchange._GREETING_SECONDS", 600.0)
    monkeypatch.setattr("horovod._cluster.elastic.exchange._MOST_CALLS", 8)
    heard = queue.Queue()
    driver = Exchange(KEY, ["lo"], heard)
    strangers = [socket.create_connection(loopback(driver), SECONDS) for _ in range(20)]

    worker = call(driver.addresses(), KEY)
    worker.send(Kind.HELLO, hello("7"))

    assert heard.get(timeout=SECONDS).caller == "7"
    assert_closed(strangers[0])
    more = [socket.create_connection(loopback(driver), SECONDS) for _ in range(20)]
    assert_closed(more[0])
    assert driver.send("7", Kind.PACKET, b"who is known stays")
    assert worker.receive(SECONDS) == (Kind.PACKET, b"who is known stays")
    begin = time.monotonic()
    driver.close()
    assert time.monotonic() - begin < SECONDS / 3, "strangers do not keep it from closing"
    for connection in (*strangers, *more, worker):
        connection.close()


STARVED = """
import queue, resource, sys
from horovod._cluster.elastic import exchange as module
module._GREETING_SECONDS = 600.0
heard = queue.Queue()
exchange = module.Exchange(bytes(range(32)), ["lo"], heard)
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
print(*exchange.addresses()["lo"][0], flush=True)
print(heard.get().caller, flush=True)
"""


def test_strangers_who_take_all_descriptors_make_room_too():
    with contextlib.ExitStack() as stack:
        words = [sys.executable, "-c", STARVED]
        driver = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        stack.callback(driver.kill)
        host, port = driver.stdout.readline().split()
        for _ in range(100):
            stack.enter_context(socket.create_connection((host, int(port)), SECONDS))

        worker = stack.enter_context(contextlib.closing(call({"lo": [(host, int(port))]}, KEY)))
        worker.send(Kind.HELLO, hello("7"))

        assert driver.stdout.readline() == "7\n"


def test_whoever_has_another_key_does_not_get_through(monkeypatch):
    monkeypatch.setattr(lines, "_FIND_SECONDS", 0.0)
    heard = queue.Queue()
    exchange = Exchange(KEY, (), heard)
    try:
        with pytest.raises(LineLostError, match="answers at none of its addresses"):
            call(exchange.addresses(), bytes(32))
        good = call(exchange.addresses(), KEY)
        good.send(Kind.HELLO, hello("7"))

        assert heard.get(timeout=SECONDS).caller == "7"
        assert exchange.send("7", Kind.PACKET, b"here")
        assert good.receive(SECONDS) == (Kind.PACKET, b"here")
        good.close()
        assert heard.get(timeout=SECONDS).kind is None
        assert not exchange.send("7", Kind.PACKET, b"too late")
    finally:
        exchange.close()


def test_a_silent_caller_is_lost():
    heard = queue.Queue()
    exchange = Exchange(KEY, (), heard, silence_seconds=0.2)
    try:
        silent = call(exchange.addresses(), KEY)
        silent.send(Kind.HELLO, hello("1"))

        assert heard.get(timeout=SECONDS).kind is Kind.HELLO
        assert heard.get(timeout=SECONDS).body == b"nothing was heard for 0.2 s"
        silent.close()
    finally:
        exchange.close()


def test_the_decider_speaks_and_ends_with_its_driver():
    answers = queue.Queue()
    decider = Decider(Limits(least=1, first=2, timeout_seconds=60), KEY, answers)
    try:
        assert next_of(answers, Decided).action["do"] == "store"
        decider.hosts({"a": 1, "b": 1})
        started = [next_of(answers, Decided).action for _ in range(2)]
        decider.end(0, 3, "raised\na mistake")
        said = next_of(answers, Decided).action
    finally:
        decider.close()

    assert [(one["do"], one["worker"], one["host"]) for one in started] == [
        ("start", 0, "a"),
        ("start", 1, "b"),
    ]
    assert (said["event"], said["reason"]) == ("failed", "worker 0 on a raised a mistake")
    assert next_of(answers, Decided).action is None


def test_what_the_decider_refuses_is_said():
    driver = ElasticDriver(Limits(least=3, first=3, most=2))
    try:
        with pytest.raises(RuntimeError, match=r"has stopped to decide: .*max-np"):
            driver.run(None, {})
    finally:
        driver.close()


class Clock:
    """An engine whose discovery fails now and then, and whose only worker ends well after some looks."""

    def __init__(self, failing_asks, looks):
        self._asks = 0
        self._failing = failing_asks
        self._looks = looks
        self.started = []

    def hosts(self):
        self._asks += 1
        if self._asks in self._failing:
            message = "the cluster does not answer"
            raise OSError(message)
        return {"a": 1, "empty": 0}

    def start(self, seat):
        self.started.append(seat)

    def tell(self, worker, packet):
        raise AssertionError

    def kill(self, worker):
        raise AssertionError

    def hear(self, heard):
        raise AssertionError

    def look(self):
        self._looks -= 1
        return [Ended(0, 0, "has finished")] if self._looks == 0 and self.started else []


def test_a_look_for_hosts_may_fail_but_not_the_first(monkeypatch, caplog):
    monkeypatch.setattr("horovod.runner.elastic.driver.DISCOVER_HOSTS_FREQUENCY_SECS", 0.0)
    driver, refusing = ElasticDriver(Limits()), ElasticDriver(Limits())
    engine = Clock(failing_asks={2, 3, 4}, looks=10)
    try:
        end = driver.run(engine, {"GIVEN": "1"})
        with pytest.raises(OSError, match="does not answer"):
            refusing.run(Clock(failing_asks={1}, looks=1), {})
    finally:
        driver.close()
        refusing.close()

    assert (end.code, end.ranks) == (0, {})
    assert [(seat.worker, seat.host, seat.variables) for seat in engine.started] == [(0, "a", {"GIVEN": "1"})]
    assert caplog.text.count("the hosts stay as they are known: the cluster does not answer") == 1


def test_lines_that_are_not_understood_end_the_decider(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(KEY)
    with key.open("rb") as file:
        done = subprocess.run(
            [*_decide_words(), "-np", "1", "--min-np", "1"],
            input=b"hello\n",
            env={**os.environ, "HOROVOD_KEY_FD": str(file.fileno())},
            pass_fds=(file.fileno(),),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )

    assert done.returncode != 0
    assert b"--decide: expected hosts, message or end, got 'hello'" in done.stderr


def _decide_words():
    from horovod.runner._program import find_program

    return [find_program(), "--decide"]


def _internal_error(status):
    error = HorovodInternalError("init: no slot")
    error.status = status
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SystemExit(0), True),
        (SystemExit(), True),
        (SystemExit(3), False),
        (SystemExit("a text"), False),
        (_internal_error(REMOVED), True),
        (_internal_error(7), False),
        (HorovodInternalError("a peer is lost"), False),
        (ValueError("no slot"), False),
    ],
)
def test_what_is_no_failure_of_a_worker(error, expected):
    assert is_farewell(error) is expected


def test_a_seat_travels_and_its_key_is_not_shown():
    seat = Seat("job", "1.0", 3, "h/1", 1, "10.0.0.1:5", {"eth0": [("10.0.0.1", 7)]}, KEY, {"A": "b"})

    back = Seat.from_json(seat.to_json())

    assert (back.worker, back.key, back.host) == (3, KEY, "h/1")
    assert json.loads(seat.to_json())["key"] == KEY.hex()
    assert repr(KEY) not in repr(seat)
    chosen = variables_of(seat)
    assert (chosen["HOROVOD_RANK"], chosen["HOROVOD_LOCAL_RANK"], chosen["A"]) == ("3", "1", "b")
