"""A connection between processes that have the same key: the greeting, and sealed messages; both ends.

Whoever calls proves first that it has the key, and a stranger gets no byte back. Then each direction has a
key of its own, made of both random numbers, and its pieces are numbered: nobody without the key reads them,
and what was changed, left out, repeated, moved or recorded is noticed before anything of it is given out.
A message is a sealed head, which says how long the body is, and the sealed body; so a length is believed only
if it comes from whoever has the key. Without forward secrecy: who learns the key later can read a recording.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time

from horovod._core._native import seal, unseal
from horovod.runner.common.util.secret import DIGEST_LENGTH_BYTES, check_digest, compute_digest

from ._guests import RecentNumbers

_NUMBER_BYTES = 32
_TAG_BYTES = 16
_HEAD = struct.Struct("!BI")
_PIECES = 2  # of a message
# The version stands in them: ends that seal in another way are strangers from the beginning.
_HELLO, _WELCOME, _CALLER, _CALLED = (
    b"hvd service 2 %s:" % step for step in (b"hello", b"welcome", b"caller", b"called")
)


class StrangerError(Exception):
    """The other end does not have the key, or does not speak this protocol."""


def _receive(connection: socket.socket, count: int, deadline: float | None) -> bytes:
    """Read all bytes before the deadline (time.monotonic); None: the socket's timeout bounds each wait."""
    parts = bytearray()
    while len(parts) < count:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                message = f"only {len(parts)} of {count} bytes came in time"
                raise StrangerError(message)
            connection.settimeout(left)
        try:
            part = connection.recv(min(count - len(parts), 1 << 20))
        except TimeoutError:
            if deadline is None:
                raise
            continue  # which says what is missing
        if not part:
            message = f"the connection ended after {len(parts)} of {count} bytes"
            raise StrangerError(message if parts else "the connection has ended")
        parts += part
    return bytes(parts)


class Channel:
    """One connection after the greeting. `receive` is for one thread at a time, and so is `send`."""

    def __init__(self, connection: socket.socket, key: bytes, numbers: bytes, *, is_caller: bool) -> None:
        """Take the numbers of both ends, the caller's first."""
        self.connection = connection
        caller, called = (compute_digest(key, label + numbers) for label in (_CALLER, _CALLED))
        self._send_key, self._receive_key = (caller, called) if is_caller else (called, caller)
        self._sent = self._received = 0  # pieces

    def send(self, kind: int, body: bytes) -> None:
        """Send one message; the timeout of the socket bounds it."""
        number = self._sent
        self._sent += _PIECES
        head = seal(self._send_key, number, _HEAD.pack(kind, len(body)))
        self.connection.sendall(head + seal(self._send_key, number + 1, body))

    def receive(self, most_bytes: int, deadline: float | None = None) -> tuple[int, bytes]:
        """Return kind and body of the next message, all of which comes before the deadline.

        Without a deadline the timeout of the socket bounds each wait. StrangerError if it is no message of
        the other end, or if the connection has ended.
        """
        kind, length = _HEAD.unpack(self._open(_HEAD.size, deadline))
        if length > most_bytes:
            message = f"the other end announces {length} bytes, at most {most_bytes} are taken"
            raise StrangerError(message)
        return kind, self._open(length, deadline)

    def _open(self, count: int, deadline: float | None) -> bytes:
        sealed = _receive(self.connection, count + _TAG_BYTES, deadline)
        opened = unseal(self._receive_key, self._received, sealed)
        if opened is None:
            message = f"message {self._received // _PIECES} is not as it was sent: it was changed on its way"
            raise StrangerError(message)
        self._received += 1
        return opened


def greet(connection: socket.socket, key: bytes) -> Channel:
    """Begin a connection as the one who calls."""
    mine = secrets.token_bytes(_NUMBER_BYTES)
    connection.sendall(mine + compute_digest(key, _HELLO + mine))
    reply = _receive(connection, _NUMBER_BYTES + DIGEST_LENGTH_BYTES, None)
    numbers = mine + reply[:_NUMBER_BYTES]
    if not check_digest(key, _WELCOME + numbers, reply[_NUMBER_BYTES:]):
        message = "the service has another key"
        raise StrangerError(message)
    return Channel(connection, key, numbers, is_caller=True)


def welcome(connection: socket.socket, key: bytes, deadline: float, recent: RecentNumbers) -> Channel:
    """Begin a connection as the one who is called; the whole greeting comes before the deadline."""
    hello = _receive(connection, _NUMBER_BYTES + DIGEST_LENGTH_BYTES, deadline)
    theirs = hello[:_NUMBER_BYTES]
    if not check_digest(key, _HELLO + theirs, hello[_NUMBER_BYTES:]):
        message = "the other end has another key"
        raise StrangerError(message)
    if not recent.add(theirs):
        message = "the other end repeats an old greeting"
        raise StrangerError(message)
    mine = secrets.token_bytes(_NUMBER_BYTES)
    connection.sendall(mine + compute_digest(key, _WELCOME + theirs + mine))
    return Channel(connection, key, theirs + mine, is_caller=False)
