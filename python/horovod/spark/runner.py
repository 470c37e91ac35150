"""horovod.spark.run: a function on every rank of a job whose processes Spark starts, as barrier tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, TextIO

from ._launch import launch, start_seconds_of

__all__ = ["run", "run_elastic"]

_LOG = logging.getLogger("horovod")


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
) -> NoReturn:
    """Not there yet."""
    message = (
        "horovod.spark.run_elastic is not there yet (horovodrun --min-np runs elastic jobs); "
        "horovod.spark.run runs the function on a fixed number of ranks"
    )
    raise NotImplementedError(message)
