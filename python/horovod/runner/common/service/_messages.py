"""Questions and answers over TCP between processes that have the same key; both ends.

A connection carries one question. Whoever asks proves first that it has the key, and a stranger gets no byte
back; then both random numbers are part of every digest, so nothing that was recorded can be used again, and
nothing of one direction in the other. What is said is JSON: plain data, which nobody executes. It is not
encrypted.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
import time
from typing import Any

from horovod.runner.common.util.secret import DIGEST_LENGTH_BYTES, check_digest, compute_digest

MAX_BODY_BYTES = 64 * 1024

_NUMBER_BYTES = 32
_LENGTH = struct.Struct("!I")
_HELLO, _WELCOME, _QUESTION, _ANSWER = (b"hvd service %d:" % step for step in range(4))


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
        part = connection.recv(count - len(parts))
        if not part:
            message = f"the connection ended after {len(parts)} of {count} bytes"
            raise StrangerError(message)
        parts += part
    return bytes(parts)


class Session:
    """One connection after the greeting; the timeout of the socket bounds every step without a deadline."""

    def __init__(self, connection: socket.socket, key: bytes, numbers: bytes) -> None:
        """Remember the numbers of both ends, in the order of the greeting."""
        self._connection = connection
        self.key = key
        self.numbers = numbers

    def send_question(self, body: Any) -> None:
        """Say what is asked."""
        self._send(_QUESTION, body)

    def receive_question(self, deadline: float | None = None) -> Any:
        """Return what is asked; all of it comes before the deadline."""
        return self._receive(_QUESTION, deadline)

    def send_answer(self, body: Any) -> None:
        """Answer."""
        self._send(_ANSWER, body)

    def receive_answer(self) -> Any:
        """Return the answer."""
        return self._receive(_ANSWER, None)

    def _send(self, label: bytes, body: Any) -> None:
        text = json.dumps(body).encode()
        if len(text) > MAX_BODY_BYTES:
            message = f"a message of {len(text)} bytes is too long, at most {MAX_BODY_BYTES} are sent"
            raise ValueError(message)
        digest = compute_digest(self.key, label + self.numbers + text)
        self._connection.sendall(_LENGTH.pack(len(text)) + digest + text)

    def _receive(self, label: bytes, deadline: float | None) -> Any:
        head = _receive(self._connection, _LENGTH.size + DIGEST_LENGTH_BYTES, deadline)
        (length,) = _LENGTH.unpack(head[: _LENGTH.size])
        if length > MAX_BODY_BYTES:
            message = f"the other end announces {length} bytes, at most {MAX_BODY_BYTES} are taken"
            raise StrangerError(message)
        text = _receive(self._connection, length, deadline)
        if not check_digest(self.key, label + self.numbers + text, head[_LENGTH.size :]):
            message = "a message was changed on its way"
            raise StrangerError(message)
        return json.loads(text)


def greet(connection: socket.socket, key: bytes) -> Session:
    """Begin a connection as the one who asks."""
    mine = secrets.token_bytes(_NUMBER_BYTES)
    connection.sendall(mine + compute_digest(key, _HELLO + mine))
    reply = _receive(connection, _NUMBER_BYTES + DIGEST_LENGTH_BYTES, None)
    numbers = mine + reply[:_NUMBER_BYTES]
    if not check_digest(key, _WELCOME + numbers, reply[_NUMBER_BYTES:]):
        message = "the service has another key"
        raise StrangerError(message)
    return Session(connection, key, numbers)


def welcome(connection: socket.socket, key: bytes, deadline: float | None = None) -> Session:
    """Begin a connection as the one who answers; the whole greeting comes before the deadline."""
    hello = _receive(connection, _NUMBER_BYTES + DIGEST_LENGTH_BYTES, deadline)
    theirs = hello[:_NUMBER_BYTES]
    if not check_digest(key, _HELLO + theirs, hello[_NUMBER_BYTES:]):
        message = "the other end has another key"
        raise StrangerError(message)
    mine = secrets.token_bytes(_NUMBER_BYTES)
    connection.sendall(mine + compute_digest(key, _WELCOME + theirs + mine))
    return Session(connection, key, theirs + mine)
