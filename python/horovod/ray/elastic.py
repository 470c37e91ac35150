"""ElasticRayExecutor, the original's first elastic form on Ray, on the same machinery as RayExecutor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from horovod.runner.elastic.settings import ElasticSettings

from . import discovery, elastic_v2
from .adapter import Adapter
from .elastic_v2 import ElasticParams
from .runner import make_adapter

__all__ = ["ElasticRayExecutor", "RayHostDiscovery", "TestDiscovery"]

_BOOTSTRAP_KEY = "~/ray_bootstrap_key.pem"


class RayHostDiscovery(discovery.RayHostDiscovery):
    """Asks Ray for its nodes; with the parameter names of this module."""

    def __init__(self, use_gpu: bool = False, cpus_per_slot: int = 1, gpus_per_slot: int = 1) -> None:
        """Keep what a slot needs."""
        super().__init__(use_gpu, cpus_per_slot, gpus_per_slot)


class TestDiscovery(elastic_v2.TestDiscovery):
    """Takes hosts away and gives them back at random; with the parameter names of this module."""

    __test__ = False

    def __init__(
        self,
        min_hosts: int,
        max_hosts: int,
        change_frequency_s: int,
        use_gpu: bool = False,
        cpus_per_slot: int = 1,
        gpus_per_slot: int = 1,
        verbose: bool = True,
        _graceful: bool = True,
    ) -> None:
        """Change something every `change_frequency_s` seconds, between the two numbers of hosts."""
        super().__init__(
            min_hosts,
            max_hosts,
            change_frequency_s,
            use_gpu,
            cpus_per_slot,
            gpus_per_slot,
            verbose,
            _graceful,
        )


class ElasticRayExecutor:
    """Deprecated in the original since 0.25 for RayExecutor(min_workers=...), which does the same."""

    @staticmethod
    def create_settings(
        min_num_proc: int = 1,
        max_num_proc: int | None = None,
        reset_limit: int | None = None,
        elastic_timeout: int = 600,
        timeout_s: int = 30,
        ssh_identity_file: str | None = None,
        nics: set[str] | None = None,
        min_np: int | None = None,
        max_np: int | None = None,
        **kwargs: Any,
    ) -> ElasticSettings:
        """Settings for the constructor. Seconds: `timeout_s` for hvd.init(). The ssh key has no effect."""
        for name, value in (("min_np", min_np), ("max_np", max_np)):
            if value is not None:
                new = name.replace("np", "num_proc")
                warnings.warn(f"{name} is deprecated, use {new}", DeprecationWarning, stacklevel=2)
        key = ssh_identity_file or _BOOTSTRAP_KEY
        made = ElasticSettings(
            discovery=None,
            min_num_proc=min_num_proc if min_np is None else min_np,
            max_num_proc=max_num_proc if max_np is None else max_np,
            elastic_timeout=elastic_timeout,
            reset_limit=reset_limit,
            num_proc=min_num_proc if min_np is None else min_np,
            ssh_identity_file=str(Path(key).expanduser()),
            nics=nics,
            **kwargs,
        )
        made.timeout_s = timeout_s  # type: ignore[attr-defined]  # as RayExecutor's settings have it
        return made

    def __init__(
        self,
        settings: ElasticSettings,
        use_gpu: bool = False,
        cpus_per_slot: int = 1,
        gpus_per_slot: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        override_discovery: bool = True,
    ) -> None:
        """With `override_discovery` all nodes are used, without it what `settings.discovery` names."""
        if not isinstance(settings, ElasticSettings):
            message = (
                f"settings must come from ElasticRayExecutor.create_settings, got {type(settings).__name__}"
            )
            raise TypeError(message)
        self.settings = settings
        self.env_vars = dict(env_vars or {})
        self._params = ElasticParams(
            cpus_per_worker=cpus_per_slot,
            use_gpu=use_gpu,
            gpus_per_worker=gpus_per_slot,
            min_workers=settings.min_num_proc or 1,
            max_workers=settings.max_num_proc,
            reset_limit=settings.reset_limit,
            cooldown_range=settings.cooldown_range,
            elastic_timeout=settings.elastic_timeout or 600,
            override_discovery=override_discovery,
        )
        if override_discovery:
            settings.discovery = RayHostDiscovery(use_gpu, cpus_per_slot, gpus_per_slot or 1)
        self._adapter: Adapter | None = None

    def start(self) -> None:
        """Prepare for run(). The workers are started by that."""
        self._adapter = make_adapter(self.settings, self._params)
        self._adapter.start(extra_env_vars=self.env_vars)

    def run(
        self, worker_fn: Callable[[], Any], callbacks: Sequence[Callable[..., Any]] | None = None
    ) -> list[Any]:
        """Call `worker_fn()` on every worker; results of those that finished, by rank.

        `callbacks` are called here with each dictionary that workers give to ray_logger.log.
        """
        if self._adapter is None:
            message = "ElasticRayExecutor.run: call start() first"
            raise RuntimeError(message)
        return self._adapter.run(worker_fn, callbacks=callbacks)
