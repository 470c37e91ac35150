"""ElasticRayExecutor, the original's first elastic form on Ray: its settings, and its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from horovod.runner.elastic.settings import ElasticSettings

from . import discovery
from .elastic_v2 import refuse_elastic


class RayHostDiscovery(discovery.RayHostDiscovery):
    """Asks Ray for its nodes; with the parameter names of this module."""

    def __init__(self, use_gpu: bool = False, cpus_per_slot: int = 1, gpus_per_slot: int = 1) -> None:
        """Keep what a slot needs."""
        super().__init__(use_gpu, cpus_per_slot, gpus_per_slot)


class ElasticRayExecutor:
    """Deprecated in the original since 0.25 for RayExecutor(min_workers=...)."""

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
        """Settings of an elastic job: refused, as the executor is."""
        del min_num_proc, max_num_proc, reset_limit, elastic_timeout, timeout_s
        del ssh_identity_file, nics, min_np, max_np, kwargs
        refuse_elastic("ElasticRayExecutor.create_settings")

    def __init__(
        self,
        settings: ElasticSettings,
        use_gpu: bool = False,
        cpus_per_slot: int = 1,
        gpus_per_slot: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        override_discovery: bool = True,
    ) -> None:
        """Refuse."""
        del settings, use_gpu, cpus_per_slot, gpus_per_slot, env_vars, override_discovery
        refuse_elastic("ElasticRayExecutor")

    def start(self) -> None:
        """Refuse."""
        refuse_elastic("ElasticRayExecutor.start")

    def run(
        self, worker_fn: Callable[[], Any], callbacks: Sequence[Callable[..., Any]] | None = None
    ) -> list[Any]:
        """Refuse."""
        del worker_fn, callbacks
        refuse_elastic("ElasticRayExecutor.run")
