"""Addresses of this machine and of others."""

from __future__ import annotations

import socket

from horovod.runner.util.network import filter_local_addresses, find_port, get_local_intfs, local_addresses

__all__ = [
    "NoValidAddressesFound",
    "filter_local_addresses",
    "find_port",
    "get_local_host_addresses",
    "get_local_intfs",
    "resolve_host_address",
]


class NoValidAddressesFound(Exception):  # noqa: N818 - name of the public interface
    """A service answers at none of the addresses that it is said to have."""


def get_local_host_addresses() -> set[str]:
    """The IPv4 addresses of all interfaces of this machine."""
    return {address for addresses in local_addresses().values() for address in addresses}


def resolve_host_address(host_name: str) -> str | None:
    """The IPv4 address of a name; None if it has none."""
    try:
        return socket.gethostbyname(host_name)
    except OSError:
        return None
