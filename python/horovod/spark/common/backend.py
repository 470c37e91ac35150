"""Who starts the processes that train: Spark, unless a backend of your own does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from horovod.spark._session import find_session

_DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"


class Backend(ABC):
    """Derive from it to run training elsewhere."""

    @abstractmethod
    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> list[Any]:
        """Call the function in every process, and return the results by rank."""

    @abstractmethod
    def num_processes(self) -> int:
        """Return the number of processes."""


def default_parallelism() -> int:
    """Return how many tasks Spark runs by default, also through Spark Connect."""
    return find_session().parallelism()


class SparkBackend(Backend):
    """Runs in Spark tasks, through horovod.spark.run, which gets `kwargs`."""

    def __init__(
        self, num_proc: int | None = None, env: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        """Use as many processes as Spark has slots, unless `num_proc` says otherwise."""
        self._num_proc = num_proc if num_proc is not None else default_parallelism()
        self._env = dict(env or {})
        self._kwargs = kwargs

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> list[Any]:
        """Call the function in Spark tasks, with this environment above that of the backend."""
        from horovod.spark import run  # noqa: PLC0415 - imported where it is used

        # Which devices a process sees is up to the cluster, not to the driver.
        whole = dict(self._env)
        whole.update(env or {})
        whole.pop(_DEVICES_VARIABLE, None)
        results: list[Any] = run(
            fn,
            args=tuple(args),
            kwargs=dict(kwargs or {}),
            num_proc=self._num_proc,
            env=whole,
            **self._kwargs,
        )
        return results

    def num_processes(self) -> int:
        """Return the number of processes."""
        return self._num_proc
