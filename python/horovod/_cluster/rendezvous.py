"""What a worker says about itself before it knows its rank, and the port where it could be met.

Rank 0 runs the rendezvous store of a job on several hosts. Nobody knows yet who becomes rank 0, so every
worker reserves a port: a socket that is bound but does not listen. The core listens on the same port
while we hold it (both sockets have SO_REUSEADDR), so nobody can take it in between.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection
from dataclasses import asdict, dataclass

from horovod.runner.util.network import local_addresses

from .versions import own_version


@dataclass(frozen=True, slots=True)
class Introduction:
    """A worker: its host as the engine tells hosts apart, where it can be met, what it runs."""

    host: str
    hostname: str
    address: str
    port: int
    version: str
    pid: int

    def to_json(self) -> str:
        """As text, for engines whose workers talk to each other. There is no secret in it."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Introduction:
        """The reverse of `to_json`; ValueError for anything else."""
        try:
            fields = json.loads(text)
            return Introduction(
                host=str(fields["host"]),
                hostname=str(fields["hostname"]),
                address=str(fields["address"]),
                port=int(fields["port"]),
                version=str(fields["version"]),
                pid=int(fields["pid"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            message = f"expected what a worker says about itself as JSON, got {text[:200]!r}"
            raise ValueError(message) from error


class _Reservation:
    """The one port that this process holds."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    def renew(self, address: str) -> int:
        """Hold a free port of the address, or of all addresses if it is not one of this host's."""
        self.release()
        try:
            self._socket = _bind(address)
        except OSError:  # the engine knows this host by an address of a gateway
            self._socket = _bind("0.0.0.0")  # noqa: S104 - it never listens
        port: int = self._socket.getsockname()[1]
        return port

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _bind(address: str) -> socket.socket:
    family, kind, _, _, where = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
    held = socket.socket(family, kind)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(where)
    except OSError:
        held.close()
        raise
    return held


_reservation = _Reservation()


def _address_on(nics: Collection[str]) -> str:
    """An address of this host on the first of the interfaces that it has."""
    known = local_addresses()
    for nic in sorted(nics):
        if nic in known:
            return min(known[nic])
    message = f"host {socket.gethostname()} has none of the interfaces {sorted(nics)}; it has {sorted(known)}"
    raise ValueError(message)


def introduce(host: str, address: str, nics: Collection[str] = ()) -> Introduction:
    """Describe this worker and reserve a port, in the worker.

    `host` is the engine's identity of the machine, `address` how the engine's other nodes reach it;
    with `nics` the address is one of these interfaces.
    """
    met_at = _address_on(nics) if nics else address
    port = _reservation.renew(met_at)
    return Introduction(
        host=host,
        hostname=socket.gethostname(),
        address=met_at,
        port=port,
        version=own_version(),
        pid=os.getpid(),
    )


def release_port() -> None:
    """Give the port back; for ranks that nobody comes to."""
    _reservation.release()
