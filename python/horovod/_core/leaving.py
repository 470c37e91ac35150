"""What happens to the core when the interpreter ends, or the program shuts it down.

In good order the work that a front end has handed to its framework is finished first, for peers read its
results; the core is shut down then, and peers that still wait are told so. After an uncaught exception
both are left as they are: peers then hear at once that this rank has ended, by name, and the launcher sees
the rank with the cause end first. The traceback is on screen before either happens.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from . import _native

LIMIT_SECONDS = 600.0
"""How long work is waited for; the stall check says meanwhile what is missing."""

_logger = logging.getLogger("horovod")
_failed = False
_callbacks: list[Callable[[], None]] = []
_guard: _Guard | None = None


class _Guard:
    """A thread that ends the wait for work when it takes too long.

    It waits for its turn from the first init on: an interpreter that ends starts no threads any more.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._begun = threading.Semaphore(0)
        self._over = threading.Semaphore(0)
        threading.Thread(target=self._run, name="hvd-leaving", daemon=True).start()

    def __enter__(self) -> None:
        self._begun.release()

    def __exit__(self, *_: object) -> None:
        self._over.release()

    def _run(self) -> None:
        while True:
            self._begun.acquire()
            if self._over.acquire(timeout=LIMIT_SECONDS):
                continue
            _logger.warning("operations are still under way after %g seconds: leaving", LIMIT_SECONDS)
            _native.shutdown()  # they fail, and the wait ends
            self._over.acquire()


def before(callback: Callable[[], None]) -> None:
    """Have work finished before the core is shut down: the callback waits for it, and raises nothing."""
    _callbacks.append(callback)
    if _native.is_initialized():  # by another front end
        arm()


def shut_down() -> None:
    """Finish what the front ends have under way, and stop the core; at once while an exception is handled."""
    try:
        if sys.exc_info()[0] is None and _native.is_initialized():
            _finish()
    finally:
        _native.shutdown()


def _finish() -> None:
    # A forked child has no such thread, nor work.
    if _guard is None or _guard.process != os.getpid():
        return
    with _guard:
        for callback in _callbacks:
            callback()


def _leave() -> None:
    if not _failed:
        shut_down()


def arm() -> None:
    """Watch the end of this process; called by every init."""
    global _guard  # noqa: PLW0603 - a property of the process
    if _callbacks and (_guard is None or _guard.process != os.getpid()):
        _guard = _Guard()
    atexit.unregister(_leave)
    atexit.register(_leave)
    if getattr(sys.excepthook, "__module__", None) == __name__:
        return
    before_ours = sys.excepthook

    def mark_failure(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        global _failed  # noqa: PLW0603 - a property of the process
        # An interactive session goes on after an exception.
        _failed = _failed or not hasattr(sys, "ps1")
        before_ours(kind, error, traceback)

    sys.excepthook = mark_failure
