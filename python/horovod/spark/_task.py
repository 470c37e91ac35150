"""One barrier task of Spark: finds its place together with the others, and looks after its worker process.

Runs in a Python worker of Spark, in its main thread. When the function of a rank fails, the task fails too,
so that Spark ends the others; its exception carries the failure to the driver.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from horovod._cluster.failures import Failure, is_consequence
from horovod._cluster.job import assign
from horovod._cluster.places import RankOrder
from horovod._cluster.rendezvous import Introduction, introduce, release_port
from horovod.runner.common.util.host_hash import host_hash

from ._barrier import to_batches
from ._console import console_key
from ._failure_text import from_json, to_json, to_text
from ._frames import Kind
from ._order import Order
from ._process import WorkerProcess
from ._reporter import Reporter

# The rank that made others fail gets so long to say why, before they fail their tasks.
_CAUSE_SECONDS = 1.5


class RankFailedError(RuntimeError):
    """The text holds the failure for the driver."""


def _address(text: str) -> str:
    """The host of `host:port`, as Spark names its executors."""
    return text.rsplit(":", 1)[0].strip("[]")


def devices_of(context: Any) -> list[str]:
    """The addresses of the GPUs that Spark gave this task."""
    resources = context.resources()
    return [str(address) for address in resources["gpu"].addresses] if "gpu" in resources else []


def ended_text(code: int) -> str:
    """How a process ended that ended too early; negative codes are signals."""
    if code >= 0:
        return f"its process exited with code {code} before the function returned"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"its process was killed by signal {-code} ({name})"


def _failure(rank: int, code: int, outcome: tuple[Kind, bytes] | None) -> Failure | None:
    """What went wrong with a process that ended; None: nothing."""
    if outcome is not None and outcome[0] is Kind.FAILURE:
        return from_json(outcome[1].decode())
    if outcome is not None and code == 0:
        return None
    text = ended_text(code)
    if outcome is not None:
        text = text.replace("before the function", "after the function")
    return Failure(rank, socket.gethostname(), time.time(), text, "", None)


def _meet(context: Any, order: Order, reporter: Reporter) -> Any:
    """Exchange introductions with all tasks; the assignment of this one. Waits for all of them.

    At the driver's console, since Spark's own exchange looks only once a second whether it is complete.
    """
    own = context.partitionId()
    address = _address(context.getTaskInfos()[own].address)
    host = host_hash(os.environ.get("CONTAINER_ID"))
    introduction = introduce(host, address, order.nics)
    said = introduction.to_json()
    texts = reporter.meet(own, said)
    if texts is None:
        texts = context.allGather(said)
    introductions = [Introduction.from_json(text) for text in texts]
    return assign(order.job, introductions, RankOrder.BY_HOST, order.env, order.nics)[own]


def _log_line(rank: int, stream: str, text: str) -> None:
    sys.stderr.write(f"[{rank}]<{stream}>:{text}")
    sys.stderr.flush()


def _work(context: Any, order: Order, reporter: Reporter) -> tuple[int, bytes | Failure]:
    """Rank, and result or failure."""
    worker = WorkerProcess(order, devices_of(context))
    try:
        assignment = _meet(context, order, reporter)
        rank: int = assignment.place.rank
        reporter.ready(rank)

        def output(stream: str, text: str) -> None:
            if order.shows_output or stream == "log":
                reporter.line(stream, text)
            else:
                _log_line(rank, stream, text)

        worker.place(assignment, output)
        code, outcome = worker.wait()
    finally:
        worker.end()
        release_port()
    failure = _failure(rank, code, outcome)
    if failure is not None:
        return rank, failure
    return rank, outcome[1] if outcome is not None else b""


def run_task(plain: Mapping[str, Any]) -> Iterator[Any]:
    """Be one task; yields the result of its rank as record batches."""
    from pyspark import BarrierTaskContext  # noqa: PLC0415

    order = Order.from_plain(plain)
    if order.executable is not None and shutil.which(order.executable) is None:
        message = f"executable {order.executable!r} is not a program on host {socket.gethostname()}"
        raise RankFailedError(message)
    context = BarrierTaskContext.get()
    reporter = Reporter(order.console, console_key(order.key))
    is_known = False
    try:
        rank, result = _work(context, order, reporter)
        if isinstance(result, Failure):
            reporter.fail(to_json(result))
    finally:
        is_known = reporter.close()
    if isinstance(result, Failure):
        if is_consequence(result):
            time.sleep(_CAUSE_SECONDS)
        raise RankFailedError(to_text(result, is_known=is_known))
    yield from to_batches(rank, result)
