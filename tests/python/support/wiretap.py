"""Networks in the hands of a test: one that passes nothing by itself, and one that only listens."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from horovod.runner.common.service._channel import Channel, greet, welcome
from horovod.runner.common.service._guests import RecentNumbers

SECONDS = 30.0
GREETING_BYTES = 64


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname(), SECONDS)
        other = listener.accept()[0]
    other.settimeout(SECONDS)
    return one, other


def read(connection: socket.socket, count: int) -> bytes:
    """So many bytes."""
    return connection.recv(count, socket.MSG_WAITALL)


class Wire:
    """Two ends that have greeted; whatever one of them sends then lies here until the test gives it."""

    def __init__(self, key: bytes) -> None:
        """Connect them."""
        caller, self.of_caller = tcp_pair()
        called, self.of_called = tcp_pair()
        self.heard = b""
        ends: list[Channel] = []
        thread = threading.Thread(target=lambda: ends.append(greet(caller, key)))
        thread.start()
        self._pass(self.of_caller, self.of_called, GREETING_BYTES)
        self.called = welcome(called, key, time.monotonic() + SECONDS, RecentNumbers())
        self._pass(self.of_called, self.of_caller, GREETING_BYTES)
        thread.join(SECONDS)
        self.caller = ends[0]

    def _pass(self, source: socket.socket, target: socket.socket, count: int) -> None:
        passed = read(source, count)
        self.heard += passed
        target.sendall(passed)

    def taken(self, kind: int, body: bytes) -> bytes:
        """A message of the caller, as it is on its way."""
        self.caller.send(kind, body)
        return read(self.of_caller, 5 + 16 + len(body) + 16)  # head, tag, body, tag

    def close(self) -> None:
        """End all of it."""
        for connection in (
            self.caller.connection,
            self.called.connection,
            self.of_caller,
            self.of_called,
        ):
            connection.close()


class Eavesdropper:
    """Stands between a server on the loopback interface and its callers, and remembers what passes."""

    def __init__(self, target: tuple[str, int]) -> None:
        """Listen."""
        self._target = target
        self._lock = threading.Lock()
        self._heard: list[bytearray] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self._connections: list[socket.socket] = []  # of the thread, until its end
        self._copiers: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Eavesdropper:  # noqa: PYI034 - Python 3.10 has no Self
        """Nothing more."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(SECONDS)
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):  # it has ended
                connection.shutdown(socket.SHUT_RDWR)
        for copier in self._copiers:
            copier.join(SECONDS)
        for connection in self._connections:
            connection.close()

    def heard(self) -> list[bytes]:
        """What passed, of each direction of each connection: caller to called, then back."""
        with self._lock:
            return [bytes(one) for one in self._heard]

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                caller = self._listener.accept()[0]
                called = socket.create_connection(self._target, SECONDS)
                called.settimeout(None)
                self._connections += (caller, called)
                for source, sink in ((caller, called), (called, caller)):
                    heard = bytearray()
                    with self._lock:
                        self._heard.append(heard)
                    copier = threading.Thread(target=self._copy, args=(source, sink, heard), daemon=True)
                    self._copiers.append(copier)
                    copier.start()

    def _copy(self, source: socket.socket, sink: socket.socket, heard: bytearray) -> None:
        with suppress(OSError):
            while part := source.recv(1 << 16):
                with self._lock:
                    heard += part
                sink.sendall(part)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
