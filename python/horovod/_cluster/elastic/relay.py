"""The worker's end of its line to the driver: copies packets between it and the core's socket.

The core speaks over a socket pair of packets, as under horovodrun. Whoever makes the pair is the launcher in
the eyes of the core: SIGTERM from that process ends a worker, from others it asks the worker to leave.
"""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress

from .line import Kind, Line, LineLostError, call, line_key
from .seat import Seat

_MOST_PACKET_BYTES = 8192
BEAT_SECONDS = 2.0


def packet_pair() -> tuple[socket.socket, socket.socket]:
    """Ours, and the core's."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def hello(caller: str) -> bytes:
    """What a line begins with."""
    return json.dumps({"caller": caller}).encode()


class Relay:
    """Copies from its construction until the end of the process, in two threads."""

    def __init__(self, seat: Seat, ours: socket.socket) -> None:
        """Call the driver; LineLostError if it cannot be reached."""
        self._ours = ours
        self._line: Line = call(seat.driver, line_key(seat.key))
        self._line.send(Kind.HELLO, hello(str(seat.worker)))
        for target in (self._from_core, self._to_core):
            threading.Thread(target=target, name="hvd-elastic-relay", daemon=True).start()

    def _from_core(self) -> None:
        with suppress(OSError, LineLostError):
            while True:
                packet = self._ours.recv(_MOST_PACKET_BYTES)
                if not packet:
                    return
                self._line.send(Kind.PACKET, packet)

    def _to_core(self) -> None:
        with suppress(OSError, LineLostError):
            while True:
                kind, body = self._line.receive()
                if kind is Kind.PACKET:
                    self._ours.send(body)
        self._ours.close()  # the core hears that there is nobody any more
