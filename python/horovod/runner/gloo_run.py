"""Jobs without MPI: the workers are started by horovodrun itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .common.util import network
from .mpi_run import run_settings

__all__ = ["gloo_run", "network"]


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
