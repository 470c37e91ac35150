"""One elastic job on Spark from the side of the driver."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, TextIO

from horovod._cluster.elastic.decider import Limits
from horovod._cluster.elastic.driver import ElasticDriver, JobEnd
from horovod._cluster.failures import RankError, first_cause
from horovod.runner._failure import FAILED
from horovod.runner.common.util.env import is_exportable

from ._barrier import make_task
from ._console import Console
from ._elastic_engine import SparkEngine
from ._launch import pickle_call, raise_failure, wait_for_room
from ._order import Order
from ._process import own_folders
from ._session import Session, SparkJob, find_session

_LOG = logging.getLogger("horovod")
# A machine that is lost without a word is noticed after this time; others at once.
_SILENCE_SECONDS = 30.0
_FAREWELL_SECONDS = 5.0
_CANCEL_SECONDS = 30.0


def sizes(parallelism: Callable[[], int], num_proc: int | None, least: int | None, most: int | None) -> Any:
    """First, least and most number of ranks; ValueError if they contradict each other."""
    first = num_proc if num_proc is not None else (least if least is not None else parallelism())
    least = first if least is None else least
    most = max(first, least) if most is None else most
    if not 1 <= least <= first <= most:
        message = f"expected 1 <= min_num_proc <= num_proc <= max_num_proc, got {least}, {first} and {most}"
        raise ValueError(message)
    return first, least, most


def launch_elastic(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    limits: Callable[[Session], Limits],
    start_seconds: float,
    env: Mapping[str, str],
    streams: tuple[TextIO | None, TextIO | None] = (None, None),
    verbose: int = 1,
    with_timestamp: bool = False,
) -> list[Any]:
    """Run a job; results of the workers that finished, by rank."""
    call = pickle_call(fn, args, kwargs)
    session = find_session()
    chosen = limits(session)
    _check_room(session, chosen.least, start_seconds)
    driver = ElasticDriver(chosen, _SILENCE_SECONDS)
    most = chosen.most or chosen.first
    console = Console(driver.job.key, chosen.nics, *streams, with_timestamp, most)
    try:
        order = _order(driver, console, call, env, chosen.nics)
        if verbose >= 2:  # noqa: PLR2004 - the levels are numbers
            _LOG.info("horovod.spark.run_elastic: %d to %d ranks as Spark tasks", chosen.least, most)
        running = SparkJob(session, make_task(order, is_elastic=True), most, barrier=False)
        return _drive(driver, session, running, console, chosen, start_seconds)
    finally:
        console.close()
        driver.close()


def _order(
    driver: ElasticDriver, console: Console, call: bytes, env: Mapping[str, str], nics: Collection[str]
) -> Order:
    return Order(
        job_name=driver.job.name,
        version=driver.job.version,
        key=driver.job.key,
        call=call,
        path=own_folders(sys.path, (sys.prefix, sys.base_prefix)),
        env={name: str(value) for name, value in env.items() if is_exportable(name)},
        executable=None,
        nics=sorted(nics),
        console=console.addresses(),
        shows_output=True,
        driver=driver.exchange.addresses(),
    )


def _check_room(session: Session, least: int, start_seconds: float) -> None:
    """Refuse at once what can never start. Executors that come and go are welcome."""
    room = session.room()
    if not room.has_dynamic_allocation:
        wait_for_room(session, least, time.monotonic() + start_seconds, "horovod.spark.run_elastic")


def _drive(
    driver: ElasticDriver,
    session: Session,
    running: SparkJob,
    console: Console,
    limits: Limits,
    start_seconds: float,
) -> list[Any]:
    def check() -> None:
        if running.wait(0):
            error = running.error or RuntimeError("its tasks have ended before the job")
            raise_failure(error, console.failures(), "horovod.spark.run_elastic")

    engine = SparkEngine(
        driver.exchange,
        num_proc=limits.first,
        most_failures=session.most_task_failures(),
        start_seconds=start_seconds,
        check=check,
        is_member=lambda worker: worker in driver.ranks,
    )
    try:
        end = driver.run(engine, {})
        engine.finish()
        running.wait(_FAREWELL_SECONDS)
    finally:
        running.cancel()  # also tasks that Spark has not started yet
        running.wait(_CANCEL_SECONDS)
    if end.code != 0:
        _raise_end(end, engine)
    workers = sorted(engine.results, key=lambda worker: (end.ranks.get(worker, (0, 0))[1], worker))
    return [engine.results[worker] for worker in workers]


def _raise_end(end: JobEnd, engine: SparkEngine) -> NoReturn:
    message = f"{FAILED}: the elastic job has failed: {end.reason}"
    first = first_cause(engine.failures)
    if first is None:
        raise RankError(message)
    said = (
        f"{message}\n\nworker {first.rank} on host {first.host} raised {first.summary}\n\n{first.traceback}"
    )
    raise RankError(said.rstrip(), first.rank)
