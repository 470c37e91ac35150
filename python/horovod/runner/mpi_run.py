"""mpirun; horovodrun finds out which one it is and composes its command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from ._job import run_program
from ._options import option_words
from ._program import complaint
from .common.util import safe_shell_exec, tiny_shell_exec

__all__ = [
    "is_impi",
    "is_mpich",
    "is_open_mpi",
    "is_spectrum_mpi",
    "mpi_available",
    "mpi_run",
    "os",
    "safe_shell_exec",
    "tiny_shell_exec",
]

_OMPI_IMPL = "OpenMPI"
_SMPI_IMPL = "SpectrumMPI"
_MPICH_IMPL = "MPICH"
_IMPI_IMPL = "IntelMPI"
_UNKNOWN_IMPL = "Unknown"
_MISSING_IMPL = "Missing"
_LARGE_CLUSTER_THRESHOLD = 64

# What `mpirun --version` says, most telling first.
_SIGNS = (
    ("IBM Spectrum MPI", _SMPI_IMPL),
    ("Open MPI", _OMPI_IMPL),
    ("OpenRTE", _OMPI_IMPL),
    ("Intel(R) MPI", _IMPI_IMPL),
    ("MPICH", _MPICH_IMPL),
    ("HYDRA", _MPICH_IMPL),
)


def _get_mpi_implementation(env: Mapping[str, str] | None = None) -> str:
    answer = tiny_shell_exec.execute("mpirun --version", env)
    if answer is None or answer[1] != 0:
        return _MISSING_IMPL
    return next((kind for sign, kind in _SIGNS if sign in answer[0]), _UNKNOWN_IMPL)


def mpi_available(env: Mapping[str, str] | None = None) -> bool:
    """Whether there is an mpirun of a kind that is known."""
    return _get_mpi_implementation(env) not in {_UNKNOWN_IMPL, _MISSING_IMPL}


def is_open_mpi(env: Mapping[str, str] | None = None) -> bool:
    """Whether mpirun is Open MPI's."""
    return _get_mpi_implementation(env) == _OMPI_IMPL


def is_spectrum_mpi(env: Mapping[str, str] | None = None) -> bool:
    """Whether mpirun is that of IBM Spectrum MPI."""
    return _get_mpi_implementation(env) == _SMPI_IMPL


def is_mpich(env: Mapping[str, str] | None = None) -> bool:
    """Whether mpirun is MPICH's."""
    return _get_mpi_implementation(env) == _MPICH_IMPL


def is_impi(env: Mapping[str, str] | None = None) -> bool:
    """Whether mpirun is that of Intel MPI."""
    return _get_mpi_implementation(env) == _IMPI_IMPL


def settings_words(settings: Any, nics: set[str] | None) -> list[str]:
    """The command line that says what Settings say."""
    args = SimpleNamespace(**vars(settings))
    args.mpi_args = settings.extra_mpi_args or None
    args.nics = nics or settings.nics
    # A Timeout, whose text is for people; the launcher starts to count when it starts.
    args.start_timeout = None
    if settings.start_timeout is not None:
        args.start_timeout = max(1, round(settings.start_timeout.remaining()))
    return option_words(args)


def run_settings(
    controller: str, settings: Any, nics: set[str] | None, env: Mapping[str, str], command: Sequence[str]
) -> None:
    """Run a job that Settings describe to its end; RuntimeError if it fails."""
    if not isinstance(env, Mapping):
        message = f"env must be a dict, got {type(env).__name__}"
        raise TypeError(message)
    environment = dict(env)
    for name in ("PATH", "PYTHONPATH"):
        if name not in environment and name in os.environ:
            environment[name] = os.environ[name]
    ended = run_program([controller, *settings_words(settings, nics), "--", *command], environment)
    if ended.code != 0:
        message = f"horovodrun {controller} failed with exit code {ended.code}\n{complaint(ended.last_words)}"
        raise RuntimeError(message)


def mpi_run(
    settings: Any,
    nics: set[str] | None,
    env: Mapping[str, str],
    command: Sequence[str],
    stdout: Any = None,
    stderr: Any = None,
) -> None:
    """Run the command under mpirun to its end; RuntimeError if that fails."""
    del stdout, stderr  # the output of the job is that of this process
    run_settings("--mpi", settings, nics, env, command)
