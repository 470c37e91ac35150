"""Addresses of this machine by interface, as the library psutil tells them."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Collection
from typing import Any

from .network import NoValidAddressesFound

__all__ = ["NoValidAddressesFound", "local_addresses"]

psutil: Any
try:
    # Programs replace functions of it here.
    psutil = importlib.import_module("psutil")
except ImportError:
    psutil = None


def local_addresses(
    nics: Collection[str] | None = None, port: int | None = None
) -> dict[str, list[str]] | dict[str, list[tuple[str, int]]]:
    """IPv4 addresses of the interfaces (default: all), with a port: pairs with it.

    NoValidAddressesFound if none of the interfaces is there.
    """
    if psutil is None:
        message = "local_addresses needs psutil: pip install psutil"
        raise ImportError(message)
    known = psutil.net_if_addrs()
    found = {
        nic: [entry.address for entry in entries if entry.family == socket.AF_INET]
        for nic, entries in known.items()
        if not nics or nic in nics
    }
    if nics and not found:
        message = (
            "No available network interface found matching user provided interfaces "
            f"{nics}, existing nics: {list(known)}"
        )
        raise NoValidAddressesFound(message)
    if port is None:
        return found
    return {nic: [(address, port) for address in addresses] for nic, addresses in found.items()}
