"""Where processes with the key call: listeners on the addresses of this host, a thread for each connection.

Strangers cost little: until a caller has shown that it belongs here it has a few seconds in all, however
slowly it sends, and makes room for a newer one when there are many. Used by servers of questions and by the
driver of elastic jobs.
"""

from __future__ import annotations

import errno
import selectors
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from horovod.runner.util.network import local_addresses

from ._channel import Channel, StrangerError, welcome
from ._guests import Guests, RecentNumbers, RefusalLog

_BACKLOG = 1024
_END_SECONDS = 10.0
_PAUSE_SECONDS = 0.01
_NOTHING_LEFT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


@dataclass(frozen=True, slots=True)
class Guest:
    """A caller that has the key."""

    channel: Channel
    deadline: float  # of what it has to say before it is told to stay
    stay: Callable[[], None]  # from now on it does not make room for others


class Reception:
    """Listens from its construction until close(), and takes calls from open() on.

    A guest is served in a thread of its own; its connection ends with that. StrangerError and ValueError of
    `serve` are refusals.
    """

    def __init__(
        self, name: str, key: bytes, nics: Collection[str] | None, most: int, greeting_seconds: float
    ) -> None:
        """Listen on the IPv4 addresses of the interfaces, or of all of them; never on a wildcard."""
        known = local_addresses()
        chosen = {nic: addresses for nic, addresses in known.items() if not nics or nic in nics}
        if not chosen:
            message = (
                f"{name}: none of the interfaces {sorted(nics or [])} has an IPv4 address; there are "
                f"{sorted(known)}"
            )
            raise ValueError(message)
        self._name = name
        self._key = key
        self._greeting_seconds = greeting_seconds
        self._guests = Guests(most)
        self._recent = RecentNumbers()
        self.refusals = RefusalLog(name)
        self._handlers: set[threading.Thread] = set()
        self._lock = threading.Lock()  # guards the handlers
        self._selector = selectors.DefaultSelector()
        self._wake, waker = socket.socketpair()
        self._selector.register(waker, selectors.EVENT_READ, None)
        self._addresses = {
            nic: [self._listen(address) for address in sorted(addresses)]
            for nic, addresses in sorted(chosen.items())
        }
        self._thread: threading.Thread | None = None

    def open(self, serve: Callable[[Guest], None]) -> None:
        """Take calls; `serve` is called by several threads."""
        self._thread = threading.Thread(target=self._run, args=[serve], name=f"hvd {self._name}", daemon=True)
        self._thread.start()

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        """Return where it listens, by interface."""
        return {nic: list(pairs) for nic, pairs in self._addresses.items()}

    def close(self) -> None:
        """Take no more calls, end those of guests that were not told to stay, and give the others time."""
        deadline = time.monotonic() + _END_SECONDS
        self._wake.close()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        self._guests.hang_up()
        with self._lock:
            handlers = list(self._handlers)
        for handler in handlers:
            handler.join(max(0.0, deadline - time.monotonic()))

    def _listen(self, address: str) -> tuple[str, int]:
        listener = socket.create_server((address, 0), backlog=_BACKLOG)
        listener.setblocking(False)  # whoever called may be gone before it is taken
        self._selector.register(listener, selectors.EVENT_READ, listener)
        host, port = listener.getsockname()
        return host, port

    def _run(self, serve: Callable[[Guest], None]) -> None:
        while True:
            ready = [key.data for key, _ in self._selector.select()]
            if None in ready:
                break
            for listener in ready:
                self._accept(listener, serve)
        for entry in list(self._selector.get_map().values()):
            entry.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _accept(self, listener: socket.socket, serve: Callable[[Guest], None]) -> None:
        try:
            connection, (host, _) = listener.accept()
        except OSError as error:  # mostly it is gone again
            if error.errno in _NOTHING_LEFT:
                self._guests.make_room()
                time.sleep(_PAUSE_SECONDS)  # its thread closes it; the call waits in the backlog
            return
        if not self._guests.add(connection, host):
            self._refuse(connection, host, "there is no room for more connections")
            return
        handler = threading.Thread(target=self._serve, args=[connection, host, serve], daemon=True)
        with self._lock:
            self._handlers.add(handler)
        try:
            handler.start()
        except RuntimeError as error:  # the system has no more threads
            self._forget(connection, handler)
            self._refuse(connection, host, str(error))

    def _serve(self, connection: socket.socket, host: str, serve: Callable[[Guest], None]) -> None:
        try:
            deadline = time.monotonic() + self._greeting_seconds
            channel = welcome(connection, self._key, deadline, self._recent)
            serve(Guest(channel, deadline, lambda: self._guests.stay(connection)))
        except (StrangerError, ValueError) as error:
            self.refusals.note(host, error)
        except OSError:
            pass  # it has gone
        finally:
            connection.close()
            self._forget(connection, threading.current_thread())

    def _refuse(self, connection: socket.socket, host: str, reason: str) -> None:
        self.refusals.note(host, reason)
        connection.close()

    def _forget(self, connection: socket.socket, handler: threading.Thread) -> None:
        self._guests.remove(connection)
        with self._lock:
            self._handlers.discard(handler)
