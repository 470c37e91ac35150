"""Jobs without MPI: the workers are started by horovodrun itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._slots import create_run_env_vars, create_slot_env_vars, launch_gloo
from .common.util import network, safe_shell_exec
from .common.util.hosts import get_host_assignments, parse_hosts
from .elastic._host_file import HostFile, discovery_environment
from .elastic.discovery import HostDiscovery, HostDiscoveryScript
from .http.http_server import RendezvousServer
from .mpi_run import run_settings
from .util import threads

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
    "safe_shell_exec",
    "threads",
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
    """The same with ElasticSettings, whose `discovery` finds the hosts; by the original's rules."""
    if not isinstance(env, Mapping):
        message = f"env must be a dict, got {type(env).__name__}"
        raise TypeError(message)
    discovery = settings.discovery
    if not isinstance(discovery, HostDiscovery):
        message = f"gloo_run_elastic: discovery must be a HostDiscovery, got {type(discovery).__name__}"
        raise ValueError(message)  # noqa: TRY004 - type of the public API

    def run(hosts: Sequence[str]) -> None:
        words = ["--whole-hosts", *hosts]
        run_settings("--gloo", settings, settings.nics, discovery_environment(env), command, words)

    if isinstance(discovery, HostDiscoveryScript):
        default = discovery.default_slots
        slots = [] if default is None else ["--slots-per-host", str(default)]
        run(["--host-discovery-script", discovery.discovery_script, *slots])
    else:
        with HostFile(discovery) as file:
            run(["--hostfile", file.path])
