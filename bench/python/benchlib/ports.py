"""Where a peer can listen."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port of the loopback interface that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
