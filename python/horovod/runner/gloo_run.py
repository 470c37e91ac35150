"""Jobs without MPI: the workers are started by horovodrun itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._slots import create_run_env_vars, create_slot_env_vars, launch_gloo
from .common.util import network
from .mpi_run import run_settings

__all__ = [
    "create_run_env_vars",
    "create_slot_env_vars",
    "gloo_run",
    "gloo_run_elastic",
    "launch_gloo",
    "network",
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
    """The same with ElasticSettings; RuntimeError with the launcher's text for what it does not run yet."""
    run_settings("--gloo", settings, settings.nics, env, command)
