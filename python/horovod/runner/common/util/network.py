"""Addresses of this machine and of others, and what goes wrong when a service is looked for there."""

from __future__ import annotations

from horovod.runner._gone import GoneService
from horovod.runner.util.network import (
    filter_local_addresses,
    find_port,
    get_driver_ip,
    get_local_host_addresses,
    get_local_intfs,
    resolve_host_address,
)

__all__ = [
    "BasicClient",
    "BasicService",
    "NoValidAddressesFound",
    "filter_local_addresses",
    "find_port",
    "get_driver_ip",
    "get_local_host_addresses",
    "get_local_intfs",
    "resolve_host_address",
]


class NoValidAddressesFound(Exception):  # noqa: N818 - name of the public interface
    """A service answers at none of the addresses that it is said to have."""


class BasicService(GoneService):
    """Not here."""


class BasicClient(GoneService):
    """Not here."""
