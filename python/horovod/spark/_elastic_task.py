"""One task of an elastic job on Spark: a place for one worker process after the other.

Runs in a Python worker of Spark. The main thread does what the driver says over the line; a thread waits for
the process, and says how it ended. It fails only when it is told to, so that Spark starts it somewhere else.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from horovod._cluster.elastic.line import MOST_BYTES, Kind, Line, LineLostError, call, line_key
from horovod._cluster.elastic.relay import BEAT_SECONDS, packet_pair
from horovod._cluster.elastic.seat import Seat

from ._console import console_key
from ._failure_text import from_json
from ._frames import Kind as Frame
from ._order import Order
from ._process import WorkerProcess
from ._reporter import Reporter
from ._task import RankFailedError, devices_of, ended_text

_MOST_PACKET_BYTES = 8192
_DRAIN_SECONDS = 5.0
_PART_BYTES = MOST_BYTES // 4


class _Place:
    """What one START brings: a process, and threads that speak for it."""

    def __init__(self, order: Order, seat: Seat, devices: list[str], line: Line, reporter: Reporter) -> None:
        self._line = line
        self._seat = seat
        self._ours, theirs = packet_pair()
        reporter.ready(seat.worker)
        with theirs:
            self._process = WorkerProcess(order, devices, theirs.fileno())

        def output(stream: str, text: str) -> None:
            if order.shows_output or stream == "log":
                reporter.line(stream, text)
            else:
                sys.stderr.write(f"[{seat.worker}]<{stream}>:{text}")

        self._process.seat(seat, output)
        self._relay = threading.Thread(target=self._copy_packets, name="hvd-spark-relay", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name="hvd-spark-worker", daemon=True)
        self._relay.start()
        self._waiter.start()

    def tell(self, packet: bytes) -> None:
        """Hand a packet to the core."""
        with suppress(OSError):  # the process has gone; its end is told
            self._ours.send(packet)

    def end(self) -> None:
        """End the process and what it started; its end is told as any other."""
        self._process.end()
        self._waiter.join()

    def _copy_packets(self) -> None:
        with suppress(OSError, LineLostError):
            while packet := self._ours.recv(_MOST_PACKET_BYTES):
                self._line.send(Kind.PACKET, packet)

    def _wait(self) -> None:
        code, outcome = self._process.wait()
        self._process.end()
        # What the core said last comes before its end. What it left running may hold the socket open.
        self._relay.join(_DRAIN_SECONDS)
        self._ours.close()
        with suppress(LineLostError):
            if outcome is not None and outcome[0] is Frame.RESULT and code == 0:
                for start in range(0, max(len(outcome[1]), 1), _PART_BYTES):
                    self._line.send(Kind.RESULT, outcome[1][start : start + _PART_BYTES])
            self._line.send(Kind.ENDED, json.dumps(_ending(self._seat, code, outcome)).encode())


def _ending(seat: Seat, code: int, outcome: tuple[Frame, bytes] | None) -> dict[str, Any]:
    """How the worker ended, for the driver: code, words, and the failure if the function raised."""
    said: dict[str, Any] = {"worker": seat.worker, "code": code if code >= 0 else 128 - code, "how": ""}
    if outcome is not None and outcome[0] is Frame.FAILURE:
        failure = outcome[1].decode()
        said.update(code=max(code, 1), how=f"raised {from_json(failure).summary}", failure=failure)
    elif code == 0:
        said["how"] = "has finished" if outcome is not None else "left"
    elif code == -signal.SIGTERM:
        said["how"] = "was ended"
    else:
        said["how"] = f"has failed: {ended_text(code)}"
    return said


def _beat(line: Line, is_over: threading.Event) -> None:
    with suppress(LineLostError):
        while not is_over.wait(BEAT_SECONDS):
            line.send(Kind.BEAT)


def _serve(order: Order, devices: list[str], line: Line, reporter: Reporter) -> str | None:
    """Do what the driver says until the job is over; why the task has to fail, or None."""
    place: _Place | None = None
    try:
        while True:
            kind, body = line.receive()
            if kind is Kind.START:
                seat = Seat.from_fields({**json.loads(body), "key": order.key})
                place = _Place(order, seat, devices, line, reporter)
            elif kind is Kind.PACKET and place is not None:
                place.tell(body)
            elif kind is Kind.KILL and place is not None:
                place.end()
            elif kind is Kind.FAIL:
                return body.decode("utf-8", "replace")
            elif kind is Kind.OVER:
                return None
    except LineLostError as error:
        return f"the driver has gone: {error}"
    finally:
        if place is not None:
            place.end()


def run_elastic_task(plain: Mapping[str, Any]) -> Iterator[Any]:
    """Be one task; it has no rows."""
    from pyspark import TaskContext  # noqa: PLC0415

    order = Order.from_plain(plain)
    if order.executable is not None and shutil.which(order.executable) is None:
        message = f"executable {order.executable!r} is not a program on host {socket.gethostname()}"
        raise RankFailedError(message)
    context = TaskContext.get()
    assert context is not None  # noqa: S101 - Spark runs this
    reporter = Reporter(order.console, console_key(order.key))
    is_over = threading.Event()
    try:
        line = call(order.driver, line_key(order.key))
        hello = {
            "caller": f"{context.partitionId()}.{context.attemptNumber()}",
            "hostname": socket.gethostname(),
            "attempt": context.attemptNumber(),
        }
        line.send(Kind.HELLO, json.dumps(hello).encode())
        threading.Thread(target=_beat, args=(line, is_over), name="hvd-spark-beat", daemon=True).start()
        complaint = _serve(order, devices_of(context), line, reporter)
        line.close()
    except LineLostError as error:
        complaint = str(error)
    finally:
        is_over.set()
        reporter.close()
    if complaint is not None:
        raise RankFailedError(complaint)
    yield from ()
