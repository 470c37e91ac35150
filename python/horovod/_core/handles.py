"""Handles of asynchronous operations, as users see them: small numbers counted from 1.

A front end has one table. Every operation takes a number, also one that blocks and one that fails,
so that ranks that issue the same operations hold the same numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _native
from .errors import HorovodInternalError

Finish = Callable[[int, Any], Any]


class Pending(NamedTuple):
    """An operation that nobody has synchronized with yet."""

    native: int
    finish: Finish | None
    """Makes the result of (native handle, result); None: the result is there already."""
    result: Any


class HandleTable:
    """The operations of one front end that are under way."""

    __slots__ = ("_last", "pending")

    def __init__(self) -> None:
        """Count from 1."""
        self._last = 0
        self.pending: dict[int, Pending] = {}

    def reset(self) -> None:
        """Forget all handles and count from 1 again: for a core that has been shut down."""
        self._last = 0
        self.pending.clear()

    def take_number(self) -> int:
        """Call once per operation, before it is submitted."""
        self._last += 1
        return self._last

    def keep(self, number: int, native: int, finish: Finish | None, result: object) -> int:
        """Remember a submission under its number, and return that number."""
        self.pending[number] = Pending(native, finish, result)
        return number

    def poll(self, handle: int) -> bool:
        """Return whether synchronize would not block; an error counts as done."""
        pending = self.pending.get(handle)
        if pending is None:
            message = f"handle {handle} was not created or has been cleared"
            raise ValueError(message)
        return _native.poll(pending.native)

    def synchronize(self, handle: int) -> Any:
        """Wait for an operation and return its result; None for a handle that is not known.

        The handle is gone afterwards, also when the operation failed. A KeyboardInterrupt leaves it
        in place: the operation goes on, and may be waited for again.
        """
        pending = self.pending.get(handle)
        if pending is None:
            return None
        try:
            _native.wait(pending.native, None)
            finish = pending.finish
            result = pending.result if finish is None else finish(pending.native, pending.result)
        except Exception:
            self._forget(handle)
            raise
        self._forget(handle)
        return result

    def _forget(self, handle: int) -> None:
        pending = self.pending.pop(handle, None)
        if pending is not None:
            # A core that has been shut down has released everything itself.
            with contextlib.suppress(HorovodInternalError, ValueError):
                _native.release(pending.native)
