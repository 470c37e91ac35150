"""Interfaces, addresses and ports of this machine, and addresses of others."""

from __future__ import annotations

import fcntl
import random
import socket
import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any

_SIOCGIFADDR = 0x8915
_LOWEST_PORT = 1024
_HIGHEST_PORT = 65535


def local_addresses() -> dict[str, set[str]]:
    """Interfaces, and the IPv4 address of each that has one."""
    found: dict[str, set[str]] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # no IPv4 address
            found[name] = {socket.inet_ntoa(answer[20:24])}
    return found


def get_local_host_addresses() -> set[str]:
    """The IPv4 addresses of all interfaces of this machine."""
    return {address for addresses in local_addresses().values() for address in addresses}


def resolve_host_address(host_name: str) -> str | None:
    """The IPv4 address of a name; None if it has none."""
    try:
        return socket.gethostbyname(host_name)
    except OSError:
        return None


def get_local_intfs(nic: str | None = None) -> set[str]:
    """The interfaces with the address 127.0.0.1, or `nic` if it is one of them."""
    loopback = {name for name, addresses in local_addresses().items() if "127.0.0.1" in addresses}
    return loopback if nic is None else loopback & {nic}


def filter_local_addresses(all_host_names: Sequence[str]) -> list[str]:
    """The names that are not of this machine."""
    own = get_local_host_addresses()
    return [name for name in all_host_names if resolve_host_address(name) not in own]


def get_driver_ip(nics: Collection[str] | None) -> str:
    """An address of this machine on one of the interfaces, not the loopback one if there is a choice."""
    candidates = {
        name: min(addresses) for name, addresses in local_addresses().items() if not nics or name in nics
    }
    if not candidates:
        message = f"none of the interfaces {sorted(nics or [])} has an IPv4 address"
        raise RuntimeError(message)
    outside = [address for _, address in sorted(candidates.items()) if not address.startswith("127.")]
    return outside[0] if outside else min(candidates.values())


def find_port(server_factory: Callable[[tuple[str, int]], Any]) -> tuple[Any, int]:
    """Call the factory with ('', port) until it raises nothing, and return its result and the port."""
    first = random.randint(_LOWEST_PORT, _HIGHEST_PORT)  # noqa: S311 - only spreads
    refusal: Exception | None = None
    for port in (*range(first, _HIGHEST_PORT + 1), *range(_LOWEST_PORT, first)):
        try:
            return server_factory(("", port)), port
        except Exception as error:  # noqa: BLE001 - servers of programs have errors of their own
            refusal = error
    message = f"Unable to find a port to bind to: the last one was refused with {refusal!r}"
    raise RuntimeError(message) from refusal
