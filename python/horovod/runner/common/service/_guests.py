"""The connections of a server: how many there may be, who goes when there are too many, what the log says."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time

_LOG = logging.getLogger(__name__)

_MOST_LINES = 8
_SUMMARY_SECONDS = 60.0


class Guests:
    """Those who are connected. A guest who has not asked yet makes room for a newer one; any thread."""

    def __init__(self, most: int) -> None:
        """Have room for `most` connections."""
        self._most = most
        self._lock = threading.Lock()
        self._silent: dict[socket.socket, None] = {}  # oldest first
        self._asking: set[socket.socket] = set()

    def add(self, guest: socket.socket) -> bool:
        """Take one more; False: all others have asked and wait for answers, so there is no room."""
        with self._lock:
            if len(self._silent) + len(self._asking) >= self._most:
                if not self._silent:
                    return False
                oldest = next(iter(self._silent))
                del self._silent[oldest]
                _hang_up(oldest)
            self._silent[guest] = None
            return True

    def has_asked(self, guest: socket.socket) -> None:
        """Say that it has proven itself, and waits for an answer."""
        with self._lock:
            if guest in self._silent:
                del self._silent[guest]
                self._asking.add(guest)

    def remove(self, guest: socket.socket) -> None:
        """Forget one that has gone."""
        with self._lock:
            self._silent.pop(guest, None)
            self._asking.discard(guest)

    def hang_up(self) -> None:
        """End the connections of all who have not asked yet."""
        with self._lock:
            for guest in self._silent:
                _hang_up(guest)
            self._silent.clear()


def _hang_up(guest: socket.socket) -> None:
    """Wake the thread that reads from it, which closes it."""
    with contextlib.suppress(OSError):
        guest.shutdown(socket.SHUT_RDWR)


class RefusalLog:
    """Says who was refused: the first few with their reason, then a count once a minute; any thread."""

    def __init__(self) -> None:
        """Have refused nobody."""
        self._lock = threading.Lock()
        self._count = 0
        self._told = 0
        self._next_summary = 0.0

    @property
    def count(self) -> int:
        """How many were refused."""
        with self._lock:
            return self._count

    def note(self, reason: object) -> None:
        """Count one, and say so unless too much was said already."""
        now = time.monotonic()
        with self._lock:
            self._count += 1
            count, told = self._count, self._told
            if count > _MOST_LINES and now < self._next_summary:
                return
            self._told = count
            self._next_summary = now + _SUMMARY_SECONDS if count > _MOST_LINES else 0.0
        if count <= _MOST_LINES:
            _LOG.warning("a connection was refused: %s", reason)
        else:
            _LOG.warning("%d more connections were refused, %d in all", count - told, count)
