"""Names of the service that tasks registered with; see horovod.runner._gone."""

from __future__ import annotations

from horovod.runner._gone import GoneService

__all__ = ["BasicDriverClient", "BasicDriverService"]


class BasicDriverClient(GoneService):
    """Not here."""


class BasicDriverService(GoneService):
    """Not here."""
