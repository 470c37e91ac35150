"""Where the workers of an elastic job call the driver, and are told what was decided.

Threads of its own take calls and read lines; each message becomes an item of the driver's queue.
"""

from __future__ import annotations

import json
import logging
import queue
import selectors
import socket
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from horovod.runner.common.service._messages import StrangerError
from horovod.runner.util.network import local_addresses

from .line import Kind, Line, LineLostError, take_call

_LOG = logging.getLogger("horovod")
_GREETING_SECONDS = 10.0
_MOST_CALLS = 4096
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of a worker, or, with `kind` None, the end of its line and why."""

    caller: str
    kind: Kind | None
    body: bytes


class Exchange:
    """Takes calls from its construction until close(); `send` is for the driver's thread."""

    def __init__(
        self, key: bytes, nics: Collection[str], heard: queue.Queue[Any], silence_seconds: float | None = None
    ) -> None:
        """Listen on the interfaces, or on all of them. Callers that are silent for so long are lost."""
        chosen = {
            name: addresses for name, addresses in local_addresses().items() if not nics or name in nics
        }
        if not chosen:
            known = sorted(local_addresses())
            message = f"none of the interfaces {sorted(nics)} has an IPv4 address; there are {known}"
            raise ValueError(message)
        self._key = key
        self._heard = heard
        self._silence_seconds = silence_seconds
        self._lines: dict[str, Line] = {}
        self._calls = 0
        self._is_closed = False
        self._lock = threading.Lock()  # guards the three above
        self._selector = selectors.DefaultSelector()
        self._wake, waker = socket.socketpair()
        self._selector.register(waker, selectors.EVENT_READ, None)
        self._addresses = {
            name: [self._listen(address) for address in sorted(addresses)]
            for name, addresses in sorted(chosen.items())
        }
        self._thread = threading.Thread(target=self._run, name="hvd-exchange", daemon=True)
        self._thread.start()

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        """Return where it listens, by interface."""
        return {name: list(pairs) for name, pairs in self._addresses.items()}

    def send(self, caller: str, kind: Kind, body: bytes = b"") -> bool:
        """Tell a worker; False if it is not there any more, which the queue says too."""
        with self._lock:
            line = self._lines.get(caller)
        if line is None:
            return False
        try:
            line.send(kind, body)
        except LineLostError:
            return False
        return True

    def hang_up(self, caller: str) -> None:
        """End the line of a worker, if there is one."""
        with self._lock:
            line = self._lines.get(caller)
        if line is not None:
            line.close()

    def close(self) -> None:
        """End all lines."""
        self._wake.close()
        self._thread.join(_END_SECONDS)
        with self._lock:
            self._is_closed = True
            lines = list(self._lines.values())
        for line in lines:
            line.close()

    def _listen(self, address: str) -> tuple[str, int]:
        listener = socket.create_server((address, 0), backlog=1024)
        listener.setblocking(False)  # whoever called may be gone before it is taken
        self._selector.register(listener, selectors.EVENT_READ, listener)
        host, port = listener.getsockname()
        return host, port

    def _run(self) -> None:
        while True:
            ready = [key.data for key, _ in self._selector.select()]
            if None in ready:
                break
            for listener in ready:
                with suppress(OSError):
                    self._start(listener.accept()[0])
        for entry in list(self._selector.get_map().values()):
            entry.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _start(self, connection: socket.socket) -> None:
        with self._lock:
            has_room = self._calls < _MOST_CALLS
            self._calls += has_room
        if not has_room:
            connection.close()
            return
        threading.Thread(target=self._serve, args=[connection], name="hvd-line", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._listen_to(connection)
        except (OSError, StrangerError, ValueError, KeyError) as error:
            _LOG.debug("a call to the driver of an elastic job was refused: %s", error)
        finally:
            connection.close()
            with self._lock:
                self._calls -= 1

    def _listen_to(self, connection: socket.socket) -> None:
        line = take_call(connection, self._key, time.monotonic() + _GREETING_SECONDS)
        kind, hello = line.receive(_GREETING_SECONDS)
        caller = str(json.loads(hello)["caller"]) if kind is Kind.HELLO else ""
        with self._lock:
            is_welcome = bool(caller) and caller not in self._lines and not self._is_closed
            if is_welcome:
                self._lines[caller] = line
        if not is_welcome:
            message = f"a caller {caller!r} is here already, or has not said who it is"
            raise ValueError(message)
        reason = "the connection has ended"
        try:
            while True:
                self._heard.put(Heard(caller, kind, hello))
                kind, hello = line.receive(self._silence_seconds)
        except (LineLostError, ValueError) as error:
            reason = str(error)
        finally:
            with self._lock:
                del self._lines[caller]
            self._heard.put(Heard(caller, None, reason.encode()))
