"""Messages on a pipe between a task and its worker process: a kind, a length, and bytes.

Both ends are processes of the same user on the same host, and the pipe is theirs alone.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import BinaryIO

_HEAD = struct.Struct("!BQ")


class Kind(IntEnum):
    """What a message is."""

    CALL = 1  # to the worker: the pickled function and arguments
    PLACE = 2  # to the worker: its assignment, as JSON
    RESULT = 3  # from the worker: the pickled result, at most once
    FAILURE = 4  # from the worker: an exception as JSON, at most once
    LOG = 5  # from the worker: a text for the driver
    SEAT = 6  # to the worker, instead of a place: its seat in an elastic job, as JSON


def write_frame(stream: BinaryIO, kind: Kind, body: bytes) -> None:
    """Send one message at once."""
    stream.write(_HEAD.pack(kind, len(body)))
    stream.write(body)
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[Kind, bytes] | None:
    """The next message; None at the end, also in the middle of a message whose writer died."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, length = _HEAD.unpack(head)
    body = stream.read(length)
    if len(body) < length:
        return None
    return Kind(kind), body
