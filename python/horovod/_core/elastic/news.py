"""What this worker hears from outside: hosts that changed, and requests to leave.

The launcher says it through the core, which also takes SIGTERM (Slurm before a time limit, a pod that ends)
as a request to leave: the worker ends its step, hands over and goes.
"""

from __future__ import annotations

import queue
from typing import Final, NamedTuple

from horovod._core import _native

REPORT_COMMITTED: Final = 1
REPORT_LEAVING: Final = 2
REPORT_DONE: Final = 3


class News(NamedTuple):
    """What is new since the last reset."""

    timestamp: int = 0
    """Of the newest change of hosts that this worker has not taken part in; 0: none."""
    changes: int = 0
    """A HostUpdateResult: 1 removed, 2 added, 3 both."""
    is_asked_to_leave: bool = False


def is_active() -> bool:
    """Whether an elastic launcher has started this process."""
    return _native.elastic_is_active()


def look() -> News:
    """Never blocks; nothing is new in a job that is not elastic."""
    return News(*_native.elastic_look())


class HostMessages(queue.Queue[tuple[float, int]]):
    """What a state was told of hosts: when, and a HostUpdateResult.

    The core's news come in when somebody asks whether there are any: programs wait in a loop for that.
    """

    def __init__(self) -> None:
        """Begin without messages."""
        super().__init__()
        self._newest = 0

    def empty(self) -> bool:
        """Return whether nothing is new, neither here nor in the core."""
        heard = look()
        if heard.timestamp > self._newest:
            self._newest = heard.timestamp
            self.put((heard.timestamp, heard.changes))
        return super().empty()


def report(kind: int, number: int = 0) -> None:
    """Tell the launcher; without one nobody hears it."""
    _native.elastic_report(kind, number)
