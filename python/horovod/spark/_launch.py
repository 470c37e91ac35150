"""One job of Spark from the side of the driver: its room, its start, its end, and which error is raised."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, TextIO

from horovod._cluster.failures import Failure, RankError, first_cause, is_consequence
from horovod._cluster.job import Job
from horovod._cluster.versions import VersionMismatchError
from horovod.runner._failure import FAILED
from horovod.runner._shipment import import_cloudpickle
from horovod.runner.common.util.env import is_exportable
from horovod.runner.common.util.timeout import TimeoutException

from ._barrier import join_parts, make_task
from ._console import Console
from ._failure_text import find_failures, find_refusal
from ._order import Order
from ._process import own_folders
from ._session import Session, SparkJob, find_session
from ._slots import Verdict, decide

_LOG = logging.getLogger("horovod")
_START_TIMEOUT_VARIABLE = "HOROVOD_SPARK_START_TIMEOUT"
_START_SECONDS = 600
_LOOK_SECONDS = 0.2
_TOO_LATE = "Timed out waiting for Spark tasks to start"
_CANCEL_SECONDS = 30.0


def start_seconds_of(given: float | None) -> float:
    """The time for tasks to start: as given, or from the environment, or ten minutes."""
    if given is not None:
        return float(given)
    text = os.environ.get(_START_TIMEOUT_VARIABLE, "").strip()
    try:
        return float(text or _START_SECONDS)
    except ValueError:
        message = f"{_START_TIMEOUT_VARIABLE} must be a number of seconds, got {text!r}"
        raise ValueError(message) from None


def pickle_call(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """The call as bytes; ValueError with the reason if something in it cannot be sent."""
    if not callable(fn):
        message = f"fn must be callable, got {type(fn).__name__}"
        raise ValueError(message)  # noqa: TRY004 - all bad arguments are ValueErrors here
    try:
        data: bytes = import_cloudpickle().dumps((fn, tuple(args), dict(kwargs)))
    except Exception as error:
        name = getattr(fn, "__qualname__", repr(fn))
        message = (
            f"function {name} cannot be sent to the Spark tasks: it or its arguments hold something that "
            f"cannot be pickled ({type(error).__name__}: {error})"
        )
        raise ValueError(message) from error
    return data


def launch(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    num_proc: int | None,
    start_seconds: float,
    env: Mapping[str, str],
    streams: tuple[TextIO | None, TextIO | None] = (None, None),
    verbose: int = 1,
    nics: Collection[str] = (),
    with_timestamp: bool = False,
    executable: str | None = None,
    shows_output: bool = True,
) -> list[Any]:
    """Run a job; what the public functions share."""
    deadline = time.monotonic() + start_seconds
    # Old programs that try time-outs give None: that there is no room comes before that it is no function.
    call = b"" if fn is None else pickle_call(fn, args, kwargs)
    session = find_session()
    size = session.parallelism() if num_proc is None else num_proc
    if size < 1:
        message = f"num_proc must be at least 1, got {size}"
        raise ValueError(message)
    wait_for_room(session, size, deadline)
    call = call or pickle_call(fn, args, kwargs)
    if verbose >= 2:  # noqa: PLR2004 - the levels are numbers
        _LOG.info("horovod.spark.run: %d ranks as barrier tasks", size)
    job = Job.create()
    console = Console(job.key, nics, *streams, with_timestamp, size)
    try:
        order = Order(
            job_name=job.name,
            version=job.version,
            key=job.key,
            call=call,
            path=own_folders(sys.path, (sys.prefix, sys.base_prefix)),
            env={name: str(value) for name, value in env.items() if is_exportable(name)},
            executable=executable,
            nics=sorted(nics),
            console=console.addresses(),
            shows_output=shows_output,
        )
        running = SparkJob(session, make_task(order), size)
        _await(running, console, size, start_seconds, deadline)
    finally:
        console.close()
    if running.error is not None:
        raise_failure(running.error, console.failures())
    return [pickle.loads(part) for part in join_parts(running.rows, size)]  # noqa: S301 - through Spark


class NoRoomError(TimeoutException, RuntimeError):
    """The application will never have enough slots: a time-out that need not be waited for."""


def wait_for_room(session: Session, size: int, deadline: float, who: str = "horovod.spark.run") -> None:
    """Until there is room; RuntimeError at once if there will be none, TimeoutException at the deadline."""
    start = time.monotonic()
    while True:
        room = session.room()
        decision = decide(size, room, time.monotonic() - start)
        if decision.verdict is Verdict.GO:
            return
        if decision.verdict is Verdict.REFUSE and room.has_dynamic_allocation:
            message = f"{who}: {decision.reason}"
            raise RuntimeError(message)
        if decision.verdict is Verdict.REFUSE:
            message = f"{_TOO_LATE}, which they never could: {who}: {decision.reason}"
            raise NoRoomError(message)
        if time.monotonic() >= deadline:
            message = f"{_TOO_LATE}: {decision.reason}"
            raise TimeoutException(message)
        time.sleep(_LOOK_SECONDS)


def _await(running: SparkJob, console: Console, size: int, start_seconds: float, deadline: float) -> None:
    """Wait for the end of the job. If it does not start in time, or somebody interrupts, it is cancelled."""
    is_started = False
    try:
        while not running.wait(_LOOK_SECONDS):
            if not is_started and time.monotonic() >= deadline:
                _check_started(running, console, size, start_seconds)
                is_started = True
    except BaseException:
        running.cancel()
        running.wait(_CANCEL_SECONDS)
        raise


def _check_started(running: SparkJob, console: Console, size: int, start_seconds: float) -> None:
    """TimeoutException if no task runs. Those of a barrier start together: one that runs stands for all.

    A job that runs is not ended because nobody reaches this host: its output is in the executors' logs.
    """
    if console.ready_ranks() > 0:
        return
    active = running.active_tasks()
    if active is None:
        _LOG.warning(
            "horovod.spark.run: no rank has reached this host after %g seconds, and Spark does not say "
            "whether the tasks run; waiting for the end of the job",
            start_seconds,
        )
    if active != 0:
        return
    message = (
        f"{_TOO_LATE}: 0 of {size} were ready after {start_seconds:g} "
        "seconds. Are there enough free slots, and can the executors reach this host?"
    )
    raise TimeoutException(message)


def raise_failure(
    error: BaseException, reported: Sequence[Failure], who: str = "horovod.spark.run"
) -> NoReturn:
    """Raise why a Spark job failed: a refusal, the first failure of a rank, or what Spark says."""
    text = str(error)
    refusal = find_refusal(text)
    if refusal is not None:
        message = f"{who}: {refusal}"
        raise VersionMismatchError(message) from None
    first = first_cause([*reported, *find_failures(text)])
    if first is not None:
        said = (
            f"{FAILED}: rank {first.rank} on host {first.host} failed: {first.summary}\n\n{first.traceback}"
        )
        if is_consequence(first):
            said += f"\nSpark says:\n{_reason(text)}"
        raise RankError(said.rstrip(), first.rank) from None
    message = f"{FAILED}: the Spark job failed: {_reason(text)}"
    raise RankError(message) from error


def _reason(text: str) -> str:
    """The first lines of what Spark says, without the frames of the JVM."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("at ", "<horovod-failure"))]
    return "\n".join(lines[:12])
