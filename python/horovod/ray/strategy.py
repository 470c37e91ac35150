"""Where workers are placed: one bundle for each, or the same number on each of several nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.util.placement_group import get_current_placement_group, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from ._slots import check_bundles, check_capacity
from .adapter import BaseParams
from .worker import BaseHorovodWorker


def create_placement_group(
    resources_per_bundle: Mapping[str, float], num_bundles: int, pg_timeout: float, pg_strategy: str
) -> tuple[Any, list[dict[str, float]]]:
    """A placement group that is ready, and its bundles; after a TimeoutError nothing is left of it."""
    check_capacity(
        "RayExecutor", num_bundles, resources_per_bundle, one_per_node=pg_strategy == "STRICT_SPREAD"
    )
    bundle = {name: amount for name, amount in resources_per_bundle.items() if amount > 0}
    bundles = [dict(bundle) for _ in range(num_bundles)]
    group = placement_group(bundles, strategy=pg_strategy)
    try:
        ray.get(group.ready(), timeout=pg_timeout)
    except BaseException as error:
        remove_placement_group(group)
        if not isinstance(error, ray.exceptions.GetTimeoutError):
            raise
        message = (
            f"RayExecutor: {num_bundles} bundles of {bundle} ({pg_strategy}) were not placed within "
            f"{pg_timeout:g} s; free are {ray.available_resources()} of {ray.cluster_resources()}"
        )
        raise TimeoutError(message) from None
    return group, bundles


def _start_worker(params: BaseParams, group: Any, bundle_index: int, rank: int, size: int) -> Any:
    remote = ray.remote(BaseHorovodWorker).options(
        num_cpus=params.cpus_per_worker,
        num_gpus=params.gpus_per_worker,
        scheduling_strategy=PlacementGroupSchedulingStrategy(
            group,
            placement_group_bundle_index=bundle_index,
            placement_group_capture_child_tasks=False,
        ),
    )
    return remote.remote(world_rank=rank, world_size=size)


class BaseStrategy:
    """Workers, and the placement group that they are in."""

    def __init__(self, settings: Any, params: BaseParams) -> None:
        """Keep what all strategies need."""
        self.settings = settings
        self.params = params
        self.placement_group: Any = None
        self.workers: list[Any] = []
        self._owns_group = False

    @property
    def _seconds(self) -> float:
        return float(getattr(self.settings, "placement_group_timeout_s", None) or 100)

    @property
    def num_workers(self) -> int:
        """How many workers there will be."""
        raise NotImplementedError

    def create_workers(self) -> tuple[list[Any], list[Any]]:
        """Start the workers; returns all of them by rank, and one of each node."""
        raise NotImplementedError

    def _create_group(self, bundle: Mapping[str, float], count: int, strategy: str) -> None:
        self.placement_group, _ = create_placement_group(bundle, count, self._seconds, strategy)
        self._owns_group = True

    def get_node_workers(self, workers: Sequence[Any]) -> list[Any]:
        """One worker of each node. Waits until all have started."""
        nodes = ray.get([worker.node_id.remote() for worker in workers], timeout=self._seconds)
        return list(dict(zip(reversed(nodes), reversed(workers), strict=True)).values())[::-1]

    def shutdown(self) -> None:
        """End the workers, and remove the placement group if it is ours."""
        for worker in self.workers:
            ray.kill(worker)
        self.workers = []
        if self._owns_group and self.placement_group is not None:
            remove_placement_group(self.placement_group)
            self._owns_group = False
        self.placement_group = None


class PGStrategy(BaseStrategy):
    """One bundle per worker, packed; or the placement group that the caller runs in."""

    def __init__(
        self,
        settings: Any,
        num_workers: int,
        use_gpu: bool = False,
        cpus_per_worker: int = 1,
        gpus_per_worker: int | None = None,
        placement_group: Any = None,
        force_create_placement_group: bool = False,
    ) -> None:
        """With `force_create_placement_group` the group of the caller is not used."""
        super().__init__(settings, BaseParams(cpus_per_worker, use_gpu, gpus_per_worker))
        self._num_workers = num_workers
        if not force_create_placement_group:
            self.placement_group = placement_group or get_current_placement_group()

    @property
    def num_workers(self) -> int:
        """How many workers there will be."""
        return self._num_workers

    def create_workers(self) -> tuple[list[Any], list[Any]]:
        """Start the workers; returns all of them by rank, and one of each node."""
        if self.placement_group is None:
            self._create_group(self.params.bundle, self._num_workers, "PACK")
        else:
            bundles = self.placement_group.bundle_specs
            check_bundles("RayExecutor", self._num_workers, self.params.bundle, bundles)
        # In a group of somebody else any bundle with room will do.
        self.workers = [
            _start_worker(
                self.params,
                self.placement_group,
                rank if self._owns_group else -1,
                rank,
                self._num_workers,
            )
            for rank in range(self._num_workers)
        ]
        return self.workers, self.get_node_workers(self.workers)


class ColocatedStrategy(BaseStrategy):
    """The same number of workers on each of several nodes, one bundle per node."""

    def __init__(
        self,
        settings: Any,
        num_hosts: int,
        num_workers_per_host: int,
        use_gpu: bool = False,
        cpus_per_worker: int = 1,
        gpus_per_worker: int | None = None,
    ) -> None:
        """Keep the numbers."""
        super().__init__(settings, BaseParams(cpus_per_worker, use_gpu, gpus_per_worker))
        self.num_hosts = num_hosts
        self.num_workers_per_host = num_workers_per_host

    @property
    def num_workers(self) -> int:
        """How many workers there will be."""
        return self.num_hosts * self.num_workers_per_host

    def create_workers(self) -> tuple[list[Any], list[Any]]:
        """Start the workers; returns all of them by rank, and one of each node."""
        bundle = {name: amount * self.num_workers_per_host for name, amount in self.params.bundle.items()}
        self._create_group(bundle, self.num_hosts, "STRICT_SPREAD")
        self.workers = [
            _start_worker(
                self.params, self.placement_group, rank // self.num_workers_per_host, rank, self.num_workers
            )
            for rank in range(self.num_workers)
        ]
        return self.workers, self.get_node_workers(self.workers)
