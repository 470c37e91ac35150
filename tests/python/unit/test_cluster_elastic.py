"""Lines between workers and the driver of an elastic job, and the process that decides, without an engine."""

import json
import os
import queue
import socket
import subprocess
import threading
import time

import pytest

from horovod._cluster.elastic import line as lines
from horovod._cluster.elastic.decider import Decided, Decider, Limits
from horovod._cluster.elastic.driver import ElasticDriver, Ended
from horovod._cluster.elastic.exchange import Exchange
from horovod._cluster.elastic.line import Kind, LineLostError, call, take_call
from horovod._cluster.elastic.relay import hello
from horovod._cluster.elastic.seat import Seat, is_farewell, variables_of
from horovod._core.errors import REMOVED
from horovod.common.exceptions import HorovodInternalError

KEY = bytes(range(32))
SECONDS = 30


def next_of(items, kind):
    return next(item for item in iter(lambda: items.get(timeout=SECONDS), None) if isinstance(item, kind))


@pytest.fixture
def pair():
    """Both ends of a line, and the bytes between them in the hands of the test."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        caller = []
        address = {"lo": [listener.getsockname()]}
        thread = threading.Thread(target=lambda: caller.append(call(address, KEY)))
        thread.start()
        taken = take_call(listener.accept()[0], KEY, time.monotonic() + SECONDS)
        thread.join(SECONDS)
    yield caller[0], taken
    caller[0].close()
    taken.close()


def test_a_line_carries_messages_both_ways(pair):
    caller, called = pair

    for number in range(3):
        caller.send(Kind.PACKET, b"%d" % number)
    called.send(Kind.START, b"x" * 1_000_000)

    assert [called.receive(SECONDS) for _ in range(3)] == [(Kind.PACKET, b"%d" % at) for at in range(3)]
    assert caller.receive(SECONDS) == (Kind.START, b"x" * 1_000_000)
    caller.close()
    with pytest.raises(LineLostError, match="ended"):
        called.receive(SECONDS)


@pytest.mark.parametrize("change", ["repeat", "reflect", "alter"])
def test_a_line_refuses_what_the_other_end_did_not_say_now(pair, change, monkeypatch):
    caller, called = pair
    sent = []
    monkeypatch.setattr(
        lines.Line,
        "_digest",
        lambda self, *what, _real=lines.Line._digest: sent.append(_real(self, *what)) or sent[-1],
    )
    caller.send(Kind.PACKET, b"good")
    assert called.receive(SECONDS) == (Kind.PACKET, b"good")
    frame = lines._HEAD.pack(Kind.PACKET, 4) + sent[0] + (b"evil" if change == "alter" else b"good")

    victim = caller if change == "reflect" else called
    (called if change == "reflect" else caller)._connection.sendall(frame)

    with pytest.raises(LineLostError, match="changed on its way"):
        victim.receive(SECONDS)


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
