"""Ranks of workers that somebody else starts and registers one by one, as environment variables."""

from __future__ import annotations

import socket
from typing import Any

import ray

from horovod._cluster.job import Job
from horovod._cluster.places import assign_places


class Coordinator:
    """Collects workers, then gives each its place. Ray Train V1 uses it; RayExecutor needs no server."""

    def __init__(self, settings: Any) -> None:
        """Start without workers."""
        self.settings = settings
        self._workers: dict[int, tuple[str, str]] = {}

    @property
    def world_size(self) -> int:
        """How many workers have registered."""
        return len(self._workers)

    @property
    def hostnames(self) -> set[str]:
        """The names of their machines."""
        return {hostname for hostname, _ in self._workers.values()}

    @property
    def node_id_string(self) -> str:
        """`id:count` for each node, separated by commas."""
        nodes = [self._workers[rank][1] for rank in sorted(self._workers)]
        return ",".join(f"{node}:{nodes.count(node)}" for node in dict.fromkeys(nodes))

    def register(self, hostname: str, node_id: str, world_rank: int) -> None:
        """Add a worker. A rank that comes twice is an error."""
        if world_rank in self._workers:
            other = self._workers[world_rank][0]
            message = f"rank {world_rank} of host {hostname} has registered already, on host {other}"
            raise ValueError(message)
        self._workers[world_rank] = (hostname, node_id)

    def finalize_registration(self) -> dict[int, dict[str, int]]:
        """The place within the host and across hosts for each rank, as environment variables."""
        if sorted(self._workers) != list(range(self.world_size)):
            message = f"expected the ranks 0 to {self.world_size - 1}, got {sorted(self._workers)}"
            raise ValueError(message)
        nodes = [self._workers[rank][1] for rank in range(self.world_size)]
        return {
            place.rank: {
                "HOROVOD_CROSS_RANK": place.cross_rank,
                "HOROVOD_CROSS_SIZE": place.cross_size,
                "HOROVOD_LOCAL_RANK": place.local_rank,
                "HOROVOD_LOCAL_SIZE": place.local_size,
            }
            for place in assign_places(nodes)
        }

    def establish_rendezvous(self) -> dict[str, str]:
        """Variables by which the workers of one node find each other.

        On several nodes a key must reach the workers, which variables cannot carry: use
        horovod.ray.HorovodTrainer or RayExecutor there.
        """
        nodes = {node for _, node in self._workers.values()}
        if len(nodes) > 1:
            message = (
                f"the workers are on {len(nodes)} nodes; Ray Train V1 has no way to give them the job's key. "
                "Use horovod.ray.HorovodTrainer (Ray Train V2) or horovod.ray.RayExecutor"
            )
            raise RuntimeError(message)
        with socket.socket() as probe:
            probe.bind(("", 0))
            port: int = probe.getsockname()[1]
        return {
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": ray.util.get_node_ip_address(),
            "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
            "HOROVOD_CONTROLLER": "gloo",
            "HOROVOD_CPU_OPERATIONS": "gloo",
            "HOROVOD_JOB_ID": Job.create().name,
        }
