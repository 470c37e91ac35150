"""The end that answers: listeners on the addresses of this host, a thread for each connection."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

from horovod.runner.util.network import local_addresses

from ._guests import Guests, RefusalLog
from ._messages import StrangerError, welcome

_GREETING_SECONDS = 5.0  # for the greeting and the question together, however slowly they come
_MOST_CONNECTIONS = 1024
_END_SECONDS = 10.0


class Server:
    """Answers questions from its construction until close(); `answer` is called by several threads."""

    def __init__(
        self, name: str, key: bytes, nics: Collection[str] | None, answer: Callable[[Any], Any]
    ) -> None:
        """Listen on the IPv4 addresses of the interfaces, or of all of them; never on a wildcard."""
        chosen = {
            interface: addresses
            for interface, addresses in local_addresses().items()
            if not nics or interface in nics
        }
        if not chosen:
            message = f"{name}: none of the interfaces {sorted(nics or [])} has an IPv4 address"
            raise ValueError(message)
        self._key = key
        self._answer = answer
        self._guests = Guests(_MOST_CONNECTIONS)
        self.refusals = RefusalLog()
        self._handlers: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._wake, waker = socket.socketpair()
        self._selector.register(waker, selectors.EVENT_READ, None)
        self._addresses = {
            interface: [self._listen(address) for address in sorted(addresses)]
            for interface, addresses in sorted(chosen.items())
        }
        self._thread = threading.Thread(target=self._run, name=f"hvd {name}", daemon=True)
        self._thread.start()

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        """Return where it listens, by interface."""
        return {interface: list(pairs) for interface, pairs in self._addresses.items()}

    def close(self) -> None:
        """Take no more connections, end those that have not asked yet, and give the others time to end."""
        deadline = time.monotonic() + _END_SECONDS
        self._wake.close()
        self._thread.join(_END_SECONDS)
        self._guests.hang_up()
        with self._lock:
            handlers = list(self._handlers)
        for handler in handlers:
            handler.join(max(0.0, deadline - time.monotonic()))

    def _listen(self, address: str) -> tuple[str, int]:
        listener = socket.create_server((address, 0), backlog=_MOST_CONNECTIONS)
        listener.setblocking(False)  # whoever connected may be gone before it is taken
        self._selector.register(listener, selectors.EVENT_READ, listener)
        host, port = listener.getsockname()
        return host, port

    def _run(self) -> None:
        while True:
            ready = [key.data for key, _ in self._selector.select()]
            if None in ready:
                break
            for listener in ready:
                with contextlib.suppress(OSError):  # it is gone again
                    self._start(listener.accept()[0])
        for entry in list(self._selector.get_map().values()):
            entry.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _start(self, connection: socket.socket) -> None:
        if not self._guests.add(connection):
            self.refusals.note("there is no room for more connections")
            connection.close()
            return
        handler = threading.Thread(target=self._serve, args=[connection], daemon=True)
        with self._lock:
            self._handlers.add(handler)
        handler.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError):
                deadline = time.monotonic() + _GREETING_SECONDS
                session = welcome(connection, self._key, deadline)
                question = session.receive_question(deadline)
                self._guests.has_asked(connection)
                answer = self._answer(question)
                connection.settimeout(_GREETING_SECONDS)
                session.send_answer(answer)
        except (StrangerError, ValueError) as error:
            self.refusals.note(error)
        finally:
            self._guests.remove(connection)
            with self._lock:
                self._handlers.discard(threading.current_thread())
