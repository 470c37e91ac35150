"""The hosts of a Ray cluster, and how many workers each has room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray


def hosts_and_slots(
    nodes: Sequence[Mapping[str, Any]], cpus_per_worker: float, gpus_per_worker: float | None
) -> dict[str, int]:
    """The slots of each alive node, by address; pure. Nodes without a slot are left out."""
    found: dict[str, int] = {}
    for node in nodes:
        if not node.get("Alive", node.get("alive")):
            continue
        resources = node["Resources"]
        slots = int(resources.get("CPU", 0) // cpus_per_worker)
        if gpus_per_worker is not None:
            slots = min(slots, int(resources.get("GPU", 0) // gpus_per_worker))
        if slots > 0:
            address = node["NodeManagerAddress"]
            found[address] = found.get(address, 0) + slots
    return found


class RayHostDiscovery:
    """Asks Ray for its nodes."""

    def __init__(self, use_gpu: bool = False, cpus_per_worker: int = 1, gpus_per_worker: int = 1) -> None:
        """Keep what a worker needs."""
        self.use_gpu = use_gpu
        self.cpus_per_worker = cpus_per_worker
        self.gpus_per_worker = gpus_per_worker

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """The slots of each alive node, by address."""
        return hosts_and_slots(
            ray.nodes(), self.cpus_per_worker, self.gpus_per_worker if self.use_gpu else None
        )
