"""Names of the service that tasks registered with; see _gone."""

from __future__ import annotations

from horovod.spark._gone import GoneService

__all__ = ["SparkDriverClient", "SparkDriverService"]


class SparkDriverService(GoneService):
    """Not here."""


class SparkDriverClient(GoneService):
    """Not here."""
