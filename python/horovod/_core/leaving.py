"""What happens to the core when the interpreter ends.

In good order it is shut down: peers that still wait are told so. After an uncaught exception it is
left as it is: peers then hear at once that this rank has ended, by name, and the launcher sees the
rank with the cause end first. The traceback is on screen before either happens.
"""

from __future__ import annotations

import atexit
import sys
from types import TracebackType

from . import _native

_failed = False


def _leave() -> None:
    if not _failed:
        _native.shutdown()


def arm() -> None:
    """Watch the end of this process; called by every init."""
    atexit.unregister(_leave)
    atexit.register(_leave)
    if getattr(sys.excepthook, "__module__", None) == __name__:
        return
    before = sys.excepthook

    def mark_failure(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        global _failed  # noqa: PLW0603 - a property of the process
        # An interactive session goes on after an exception.
        _failed = _failed or not hasattr(sys, "ps1")
        before(kind, error, traceback)

    sys.excepthook = mark_failure
