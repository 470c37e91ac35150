"""RayExecutor: functions on the ranks of a job whose workers are Ray actors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray

from .adapter import Adapter
from .coordinator import Coordinator
from .elastic_v2 import ElasticAdapter, ElasticParams
from .settings import MiniSettings, write_identity
from .static import StaticAdapter, StaticParams
from .worker import BaseHorovodWorker

__all__ = [
    "BaseHorovodWorker",
    "Coordinator",
    "ElasticAdapter",
    "ElasticParams",
    "MiniSettings",
    "RayExecutor",
    "StaticAdapter",
    "StaticParams",
]


def _adapter_class(params: StaticParams | ElasticParams) -> type[Adapter]:
    return ElasticAdapter if isinstance(params, ElasticParams) else StaticAdapter


class _RemoteAdapter(Adapter):
    """An adapter inside the cluster, for drivers that are connected through ray://."""

    def __init__(self, settings: Any, params: StaticParams | ElasticParams) -> None:
        kind = _adapter_class(params)
        self._actor = ray.remote(num_cpus=0)(kind).remote(settings, params)

    def start(self, *args: Any, **kwargs: Any) -> None:
        ray.get(self._actor.start.remote(*args, **kwargs))

    def execute(self, fn: Callable[[Any], Any], callbacks: Sequence[Callable[..., Any]] | None = None) -> Any:
        return ray.get(self._actor.execute.remote(fn, callbacks))

    def run(self, *args: Any, **kwargs: Any) -> list[Any]:
        results: list[Any] = ray.get(self._actor.run.remote(*args, **kwargs))
        return results

    def run_remote(self, *args: Any, **kwargs: Any) -> list[Any]:
        references: list[Any] = ray.get(self._actor.run_remote.remote(*args, **kwargs))
        return references

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        return ray.get(self._actor.execute_single.remote(fn))

    def shutdown(self) -> None:
        ray.get(self._actor.shutdown.remote())
        ray.kill(self._actor)


def make_adapter(settings: Any, params: StaticParams | ElasticParams) -> Adapter:
    """The adapter for these parameters, where the workers can reach it."""
    kind: Any = _RemoteAdapter if ray.util.client.ray.is_connected() else _adapter_class(params)
    adapter: Adapter = kind(settings, params)
    return adapter


def _params(
    *,
    min_workers: int | None,
    max_workers: int | None,
    num_workers: int | None,
    static: Mapping[str, Any],
    **elastic: Any,
) -> StaticParams | ElasticParams:
    if max_workers is not None and not (min_workers and min_workers > 0):
        message = f"max_workers is {max_workers}, so min_workers must be 1 or more, got {min_workers}"
        raise ValueError(message)
    if min_workers is not None and num_workers is not None:
        message = (
            "Both `min_workers` and `num_workers` provided. "
            f"Give min_workers ({min_workers}) for an elastic job or num_workers ({num_workers}), not both"
        )
        raise ValueError(message)
    if min_workers is not None and max_workers is not None and max_workers < min_workers:
        message = f"max_workers must be min_workers ({min_workers}) or more, got {max_workers}"
        raise ValueError(message)
    if min_workers is None:
        return StaticParams(num_workers=num_workers, **static)
    names = ("cpus_per_worker", "use_gpu", "gpus_per_worker")
    shared = {name: static[name] for name in names}
    return ElasticParams(min_workers=min_workers, max_workers=max_workers, **shared, **elastic)


class RayExecutor:
    """A Horovod job on Ray: `start()`, then `run(fn)` any number of times, then `shutdown()`."""

    @classmethod
    def create_settings(
        cls,
        timeout_s: int = 30,
        ssh_identity_file: str | None = None,
        ssh_str: str | None = None,
        placement_group_timeout_s: int = 100,
        nics: set[str] | None = None,
    ) -> MiniSettings:
        """Settings for the constructor. Seconds: `timeout_s` for hvd.init(), the other for the placement."""
        write_identity(ssh_identity_file, ssh_str)
        return MiniSettings(
            ssh_identity_file=ssh_identity_file,
            timeout_s=timeout_s,
            placement_group_timeout_s=placement_group_timeout_s,
            nics=nics,
        )

    def __init__(
        self,
        settings: Any,
        num_workers: int | None = None,
        num_hosts: int | None = None,
        num_workers_per_host: int = 1,
        cpus_per_worker: int = 1,
        use_gpu: bool = False,
        gpus_per_worker: int | None = None,
        use_current_placement_group: bool = True,
        min_workers: int | None = None,
        max_workers: int | None = None,
        reset_limit: int | None = None,
        cooldown_range: list[int] | None = None,
        elastic_timeout: int = 600,
        override_discovery: bool = True,
    ) -> None:
        """Place `num_workers` anywhere, or `num_workers_per_host` on each of `num_hosts` nodes.

        With `min_workers` the job is elastic: it has as many workers as the cluster has room for, up to
        `max_workers`, and goes on while there are at least `min_workers`. Below that it waits for
        `elastic_timeout` seconds. `reset_limit`: membership changes at most so often.
        `cooldown_range`: seconds until a node whose worker failed gets a new one. Without
        `override_discovery`, `settings.discovery` says which addresses are used.
        """
        params = _params(
            min_workers=min_workers,
            max_workers=max_workers,
            num_workers=num_workers,
            static={
                "num_hosts": num_hosts,
                "num_workers_per_host": num_workers_per_host,
                "cpus_per_worker": cpus_per_worker,
                "use_gpu": use_gpu,
                "gpus_per_worker": gpus_per_worker,
                "use_current_placement_group": use_current_placement_group,
            },
            reset_limit=reset_limit,
            cooldown_range=cooldown_range,
            elastic_timeout=elastic_timeout,
            override_discovery=override_discovery,
        )
        self.settings = settings
        self.settings.elastic = params.elastic  # programs ask the settings which kind of job it is
        self.params = params
        self.adapter: Adapter | None = None

    def start(
        self,
        executable_cls: type | None = None,
        executable_args: Sequence[Any] | None = None,
        executable_kwargs: Mapping[str, Any] | None = None,
        extra_env_vars: Mapping[str, str] | None = None,
    ) -> None:
        """Start the workers. Each makes `executable_cls(*executable_args, **executable_kwargs)`, if given.

        RuntimeError if they run already. After the loss of a worker it starts them anew.
        """
        adapter = self.adapter or make_adapter(self.settings, self.params)
        adapter.start(executable_cls, executable_args, executable_kwargs, extra_env_vars)
        self.adapter = adapter

    def _started(self, what: str) -> Adapter:
        if self.adapter is None:
            message = f"RayExecutor.{what}: call start() first"
            raise RuntimeError(message)
        return self.adapter

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[Any]:
        """Call `fn(*args, **kwargs)` on every worker, and return the results by rank.

        An exception of a rank is raised here with its traceback. A worker that dies ends the
        others and frees the placement group; its RayActorError is raised within seconds. In an elastic job
        the others go on: the results are those of the workers that finished, and `callbacks` are
        called here with each dictionary that a worker gives to ray_logger.log.
        """
        return self._started("run").run(fn, args, kwargs, callbacks)

    def run_remote(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Call the function on every worker, and return references to the results by rank."""
        return self._started("run_remote").run_remote(fn, args, kwargs)

    def execute(
        self, fn: Callable[[Any], Any], callbacks: Sequence[Callable[..., Any]] | None = None
    ) -> list[Any]:
        """Call `fn(executable)` on every worker, and return the results by rank."""
        results: list[Any] = self._started("execute").execute(fn, callbacks)
        return results

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn(executable)` on rank 0 alone, and return its result."""
        return self._started("execute_single").execute_single(fn)

    def shutdown(self) -> None:
        """End the workers and remove the placement group, if it was made for them."""
        if self.adapter is not None:
            self.adapter.shutdown()
            self.adapter = None
