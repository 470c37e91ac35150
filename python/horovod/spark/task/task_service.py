"""Names of the service that ran commands in a task; see _gone."""

from __future__ import annotations

from horovod.spark._gone import GoneService

__all__ = ["SparkTaskClient", "SparkTaskService"]


class SparkTaskService(GoneService):
    """Not here."""


class SparkTaskClient(GoneService):
    """Not here."""
