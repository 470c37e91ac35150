"""horovod.spark.run and run_elastic: a function on every rank of a job whose processes Spark starts."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TextIO

from horovod._cluster.elastic.decider import Limits

from ._elastic_launch import launch_elastic, sizes
from ._gone import gone_function
from ._launch import launch, start_seconds_of
from ._session import Session

__all__ = ["run", "run_elastic"]

_LOG = logging.getLogger("horovod")

_task_fn = gone_function("horovod.spark.runner._task_fn")


def run(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = None,
    start_timeout: float | None = None,
    use_mpi: bool | None = None,
    use_gloo: bool | None = None,
    extra_mpi_args: str | None = None,
    env: Mapping[str, str] | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    verbose: int = 1,
    nics: Collection[str] | None = None,
    prefix_output_with_timestamp: bool = False,
    executable: str | None = None,
) -> list[Any]:
    """Call fn(*args, **kwargs) on every rank of a job of Spark tasks; the results by rank.

    `num_proc`: ranks, as many as Spark has default parallelism if None. `start_timeout`: seconds for
    the tasks to start (HOROVOD_SPARK_START_TIMEOUT, or 600), then TimeoutException. `env`: further
    variables for the ranks. `stdout`, `stderr`: where their lines go, with the rank in front.
    `executable`: the Python of the ranks, by default that of the tasks. Spark starts the
    processes, so `use_mpi` and `extra_mpi_args` have no effect but a warning.
    """
    if use_mpi and use_gloo:
        message = "give use_mpi or use_gloo, not both"
        raise ValueError(message)
    if use_mpi or extra_mpi_args:
        _LOG.warning(
            "horovod.spark.run: Spark starts the ranks, not mpirun; use_mpi and extra_mpi_args are ignored"
        )
    return launch(
        fn,
        args,
        kwargs or {},
        num_proc=num_proc,
        start_seconds=start_seconds_of(start_timeout),
        env=env or {},
        streams=(stdout, stderr),
        verbose=verbose,
        nics=nics or (),
        with_timestamp=prefix_output_with_timestamp,
        executable=executable,
    )


def run_elastic(
    fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = None,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    start_timeout: float | None = None,
    elastic_timeout: float | None = None,
    reset_limit: int | None = None,
    env: Mapping[str, str] | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    verbose: int = 1,
    nics: Collection[str] | None = None,
    prefix_output_with_timestamp: bool = False,
    min_np: int | None = None,
    max_np: int | None = None,
) -> list[Any]:
    """Call fn on the ranks of an elastic job of Spark tasks; results of those that finished, by rank.

    `num_proc`: ranks to begin with, `min_num_proc` if None, else as many as Spark has default
    parallelism. The job goes on while there are `min_num_proc` (`num_proc`), and uses up to
    `max_num_proc` (`num_proc`) tasks. `elastic_timeout`: seconds to wait while there are too few (600, or
    HOROVOD_ELASTIC_TIMEOUT). `reset_limit`: membership changes at most so often. The others as in `run`.
    """
    for old, new, value in (("min_np", "min_num_proc", min_np), ("max_np", "max_num_proc", max_np)):
        if value is not None:
            warnings.warn(f"{old} is deprecated, use {new}", DeprecationWarning, stacklevel=2)

    def limits(session: Session) -> Limits:
        first, least, most = sizes(
            session.parallelism,
            num_proc,
            min_num_proc if min_np is None else min_np,
            max_num_proc if max_np is None else max_np,
        )
        return Limits(
            least=least,
            first=first,
            most=most,
            resets=reset_limit,
            timeout_seconds=None if elastic_timeout is None else int(elastic_timeout),
            nics=sorted(nics or ()),
        )

    return launch_elastic(
        fn,
        args,
        kwargs or {},
        limits=limits,
        start_seconds=start_seconds_of(start_timeout),
        env=env or {},
        streams=(stdout, stderr),
        verbose=verbose,
        with_timestamp=prefix_output_with_timestamp,
    )
