"""Names of the launcher's service on its own host; see horovod.runner._gone."""

from __future__ import annotations

from horovod.runner._gone import GoneService

__all__ = ["HorovodRunDriverClient", "HorovodRunDriverService"]


class HorovodRunDriverClient(GoneService):
    """Not here."""


class HorovodRunDriverService(GoneService):
    """Not here."""
