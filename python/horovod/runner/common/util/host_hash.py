"""A name for the host of this process: processes with the same one can share memory."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

_NAMESPACES = Path("/proc/self/ns")


def _hash(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _namespaces() -> str:
    """Containers of one machine are different hosts."""
    try:
        names = sorted(os.listdir(_NAMESPACES))  # noqa: PTH208 - names, not paths
        return " ".join(str((_NAMESPACES / name).readlink()) for name in names)
    except OSError:
        return ""


def host_hash(salt: str | None = None) -> str:
    """Short host name and a digest of full name, namespaces and salt."""
    text = f"{socket.getfqdn()}-{_namespaces()}"
    if salt:
        text = f"{text}-{salt}"
    return f"{socket.gethostname().split('.')[0]}-{_hash(text)}"
