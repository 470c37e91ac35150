"""A connection between a worker and the driver: both have a key of the job, and speak when they like.

What they say is sealed, whatever HOROVOD_TLS says: see runner/common/service/_channel.py.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import IntEnum

from horovod.runner.common.service._channel import Channel, StrangerError, greet
from horovod.runner.common.service._reception import Guest

MOST_BYTES = 4 << 20
_MOST_HELLO_BYTES = 64 << 10
_CONNECT_SECONDS = 5.0
_FIND_SECONDS = 30.0
_PAUSE_SECONDS = 0.2
_SEND_SECONDS = 30.0

Addresses = Mapping[str, Sequence[tuple[str, int]]]


def line_key(job_key: bytes) -> bytes:
    """The key of the lines: not that of the job, which is for the ranks."""
    return hmac.new(job_key, b"horovod elastic line", hashlib.sha256).digest()


class Kind(IntEnum):
    """What a message is."""

    HELLO = 1  # from the worker, first: who it is, as JSON
    PACKET = 2  # both ways: what the core and the decider say to each other
    BEAT = 3  # from the worker: it is there
    START = 4  # to a task: start a worker, as JSON
    KILL = 5  # to a task: end its worker
    OVER = 6  # to a task: the job has ended
    ENDED = 7  # from a task: how its worker ended, as JSON
    RESULT = 8  # from a task, before ENDED: a part of what the function returned
    FAIL = 9  # to a task: end as a failure, with these words


class LineLostError(ConnectionError):
    """The other end has gone."""


class Line:
    """One end. `receive` is for one thread, `send` for any."""

    def __init__(self, channel: Channel) -> None:
        """Begin after the greeting."""
        self._channel = channel
        self._connection = connection = channel.connection
        self._lock = threading.Lock()  # guards sending
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_SEND_SECONDS * 1000))
        connection.settimeout(None)

    def send(self, kind: Kind, body: bytes = b"") -> None:
        """Send one message; LineLostError if the other end has gone."""
        if len(body) > MOST_BYTES:
            message = f"a message of {len(body)} bytes is too long, at most {MOST_BYTES} are sent"
            raise ValueError(message)
        with self._lock:
            try:
                self._channel.send(kind, body)
            except OSError as error:
                raise LineLostError(str(error)) from error

    def receive(self, silence_seconds: float | None = None) -> tuple[Kind, bytes]:
        """Return the next message; LineLostError at the end, or if nothing comes for so long."""
        try:
            self._connection.settimeout(silence_seconds)
            kind, body = self._channel.receive(MOST_BYTES)
        except TimeoutError:
            message = f"nothing was heard for {silence_seconds:g} s"
            raise LineLostError(message) from None
        except (OSError, StrangerError) as error:
            raise LineLostError(str(error)) from error
        return Kind(kind), body

    def close(self) -> None:
        """End it; whoever receives hears that."""
        with suppress(OSError):  # the other end was first
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def call(addresses: Addresses, key: bytes) -> Line:
    """Connect to the driver; LineLostError with all that was tried if it does not answer."""
    pairs = [(host, port) for listed in addresses.values() for host, port in listed]
    # A loopback address is that of whatever host looks at it; others come first.
    pairs.sort(key=lambda pair: (pair[0].startswith("127."), pair))
    end = time.monotonic() + _FIND_SECONDS
    while True:
        problems = []
        for address in pairs:
            try:
                connection = socket.create_connection(address, _CONNECT_SECONDS)
            except OSError as error:
                problems.append(f"{address[0]}:{address[1]} ({error})")
                continue
            try:
                return Line(greet(connection, key))
            except (OSError, StrangerError) as error:
                connection.close()
                problems.append(f"{address[0]}:{address[1]} ({error})")
        if time.monotonic() >= end:
            message = f"the driver of the job answers at none of its addresses: {', '.join(problems)}"
            raise LineLostError(message)
        time.sleep(_PAUSE_SECONDS)


def take_call(guest: Guest) -> tuple[Line, bytes]:
    """The other end of `call`, and its HELLO; StrangerError if that does not come, and in time."""
    kind, hello = guest.channel.receive(_MOST_HELLO_BYTES, guest.deadline)
    if kind != Kind.HELLO:
        message = f"a caller has not said who it is, but sent a message of kind {kind}"
        raise StrangerError(message)
    return Line(guest.channel), hello
