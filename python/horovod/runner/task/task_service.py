"""Names of the launcher's service on other hosts; see horovod.runner._gone."""

from __future__ import annotations

from horovod.runner._gone import GoneService

__all__ = ["HorovodRunTaskClient", "HorovodRunTaskService"]


class HorovodRunTaskClient(GoneService):
    """Not here."""


class HorovodRunTaskService(GoneService):
    """Not here."""
