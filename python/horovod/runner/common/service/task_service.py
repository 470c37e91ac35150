"""The exception of the original's task service. The service itself ran what it was sent, and is gone."""

from __future__ import annotations

from horovod.runner._gone import GoneService

__all__ = ["BasicTaskClient", "BasicTaskService", "CommandOutputNotCaptured"]


class CommandOutputNotCaptured(Exception):  # noqa: N818 - name of the public interface
    """A command does not capture its output, so there is nothing to stream."""


class BasicTaskService(GoneService):
    """Not here."""


class BasicTaskClient(GoneService):
    """Not here."""
