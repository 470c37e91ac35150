"""Jobs without MPI: the workers are started by horovodrun itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._slots import create_run_env_vars, create_slot_env_vars, launch_gloo
from .common.util import network
from .common.util.hosts import get_host_assignments, parse_hosts
from .elastic.discovery import FixedHosts, HostDiscoveryScript
from .http.http_server import RendezvousServer
from .mpi_run import run_settings

__all__ = [
    "RendezvousServer",
    "create_run_env_vars",
    "create_slot_env_vars",
    "get_host_assignments",
    "gloo_run",
    "gloo_run_elastic",
    "launch_gloo",
    "network",
    "parse_hosts",
]


def _get_min_start_hosts(settings: Any) -> int:
    """Interfaces that hosts have in common can only be found between two of them."""
    return 2 if settings.elastic and not settings.nics else 1


def gloo_run(
    settings: Any,
    nics: set[str] | None,
    env: Mapping[str, str],
    server_ip: str | None,
    command: Sequence[str],
) -> None:
    """Run the command on every rank to its end; RuntimeError if one fails."""
    del server_ip  # horovodrun serves the rendezvous on all addresses that may be used
    run_settings("--gloo", settings, nics, env, command)


def gloo_run_elastic(settings: Any, env: Mapping[str, str], command: Sequence[str]) -> None:
    """The same with ElasticSettings, whose hosts a script or a FixedHosts names; by the original's rules."""
    words = ["--whole-hosts", *_discovery_words(settings.discovery)]
    run_settings("--gloo", settings, settings.nics, env, command, words)


def _discovery_words(discovery: Any) -> list[str]:
    if isinstance(discovery, HostDiscoveryScript):
        words = ["--host-discovery-script", discovery.discovery_script]
        if discovery.default_slots is not None:
            words += ["--slots-per-host", str(discovery.default_slots)]
    elif isinstance(discovery, FixedHosts):
        hosts = discovery.find_available_hosts_and_slots()
        words = ["-H", ",".join(f"{host}:{slots}" for host, slots in hosts.items())]
    else:
        message = (
            "gloo_run_elastic: horovodrun finds hosts by a HostDiscoveryScript or FixedHosts, "
            f"got {type(discovery).__name__}; ElasticDriver takes any HostDiscovery"
        )
        raise ValueError(message)  # noqa: TRY004 - type of the public API
    return words
