"""Who calls a server: how many there may be, who makes room for others, what the log says. Any thread."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections import Counter

_LOG = logging.getLogger(__name__)

_MOST_NUMBERS = 1024
_MOST_LINES = 8
_SUMMARY_SECONDS = 60.0


class Guests:
    """Those who are connected. A guest who has not proven itself yet makes room for a newer one.

    The oldest of the host with the most of them goes, so that one host cannot crowd out the others.
    """

    def __init__(self, most: int) -> None:
        """Have room for `most` connections."""
        self._most = most
        self._lock = threading.Lock()
        self._silent: dict[socket.socket, str] = {}  # and their hosts, oldest first
        self._staying: set[socket.socket] = set()

    def add(self, guest: socket.socket, host: str) -> bool:
        """Take one more; False: all others stay, so there is no room."""
        with self._lock:
            if len(self._silent) + len(self._staying) >= self._most and not self._drop_one():
                return False
            self._silent[guest] = host
            return True

    def make_room(self) -> None:
        """End the connection of one who has not proven itself yet."""
        with self._lock:
            self._drop_one()

    def stay(self, guest: socket.socket) -> None:
        """Say that it has proven itself."""
        with self._lock:
            if guest in self._silent:
                del self._silent[guest]
                self._staying.add(guest)

    def remove(self, guest: socket.socket) -> None:
        """Forget one that has gone."""
        with self._lock:
            self._silent.pop(guest, None)
            self._staying.discard(guest)

    def hang_up(self) -> None:
        """End the connections of all who have not proven themselves yet."""
        with self._lock:
            for guest in self._silent:
                _hang_up(guest)
            self._silent.clear()

    def _drop_one(self) -> bool:
        if not self._silent:
            return False
        counts = Counter(self._silent.values())
        busiest = max(counts.values())
        oldest = next(guest for guest, host in self._silent.items() if counts[host] == busiest)
        del self._silent[oldest]
        _hang_up(oldest)
        return True


def _hang_up(guest: socket.socket) -> None:
    """Wake the thread that reads from it, which closes it."""
    with contextlib.suppress(OSError):
        guest.shutdown(socket.SHUT_RDWR)


class RecentNumbers:
    """The random numbers of recent callers: one that comes twice is a recording.

    Only numbers with a proof are remembered, so that strangers cannot push others out.
    """

    def __init__(self) -> None:
        """Remember none."""
        self._lock = threading.Lock()
        self._known: dict[bytes, None] = {}  # oldest first

    def add(self, number: bytes) -> bool:
        """Remember one; False: it was here before."""
        with self._lock:
            if number in self._known:
                return False
            self._known[number] = None
            if len(self._known) > _MOST_NUMBERS:
                del self._known[next(iter(self._known))]
            return True


class RefusalLog:
    """Says who was refused: the first few with their reason, then a count once a minute."""

    def __init__(self, name: str) -> None:
        """Have refused nobody; `name` is that of the server."""
        self._name = name
        self._lock = threading.Lock()
        self._count = 0
        self._told = 0
        self._next_summary = 0.0

    @property
    def count(self) -> int:
        """How many were refused."""
        with self._lock:
            return self._count

    def note(self, host: str, reason: object) -> None:
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
            _LOG.warning("%s: a connection from %s was refused: %s", self._name, host, reason)
        else:
            _LOG.warning("%s: %d more connections were refused, %d in all", self._name, count - told, count)
