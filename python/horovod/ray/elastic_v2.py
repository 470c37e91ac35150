"""The place of elastic jobs behind RayExecutor (min_workers, max_workers)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from .adapter import BaseParams
from .discovery import RayHostDiscovery

__all__ = ["ElasticParams", "RayHostDiscovery", "refuse_elastic"]


@dataclass
class ElasticParams(BaseParams):
    """Limits of an elastic job."""

    min_workers: int = 1
    max_workers: int | None = None
    reset_limit: int | None = None
    cooldown_range: list[int] | None = None
    elastic_timeout: int = 600
    override_discovery: bool = True

    @property
    def elastic(self) -> bool:
        """Whether the number of workers changes."""
        return True


def refuse_elastic(what: str) -> NoReturn:
    """Say that workers cannot come and go in a running job yet."""
    message = (
        f"{what}: jobs on Ray whose workers come and go while they run are not there yet "
        "(horovodrun --min-np has them). Use RayExecutor(num_workers=...), or HorovodTrainer with "
        "ScalingConfig(num_workers=(min, max)), which starts again from the last checkpoint "
        "when the cluster changes"
    )
    raise NotImplementedError(message)
