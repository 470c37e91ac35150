"""The name of what told an elastic driver its hosts; see _gone."""

from __future__ import annotations

from horovod.spark._gone import GoneService

__all__ = ["SparkDriverHostDiscovery"]


class SparkDriverHostDiscovery(GoneService):
    """Not here."""
