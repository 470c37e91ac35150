"""mpirun: which one it is, and a command under it.

`horovodrun --mpi` decides about its own line. The names here keep their old contract: programs replace
`_get_mpi_implementation_flags`, `safe_shell_exec.execute` or `os.execve`, and expect these to be called.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from . import _mpi_line
from ._failure import failure_text
from ._job import run_program
from ._options import option_words
from .common.util import safe_shell_exec, tiny_shell_exec

__all__ = [
    "is_impi",
    "is_intel_mpi",
    "is_mpich",
    "is_open_mpi",
    "is_spectrum_mpi",
    "mpi_available",
    "mpi_run",
    "os",
    "safe_shell_exec",
    "tiny_shell_exec",
]

_OMPI_IMPL = _mpi_line.OMPI_IMPL
_SMPI_IMPL = _mpi_line.SMPI_IMPL
_MPICH_IMPL = _mpi_line.MPICH_IMPL
_IMPI_IMPL = _mpi_line.IMPI_IMPL
_UNKNOWN_IMPL = "Unknown"
_MISSING_IMPL = "Missing"
_LARGE_CLUSTER_THRESHOLD = _mpi_line.LARGE_CLUSTER_THRESHOLD

# What `mpirun --version` says, most telling first.
_SIGNS = (
    ("IBM Spectrum MPI", _SMPI_IMPL),
    ("Open MPI", _OMPI_IMPL),
    ("OpenRTE", _OMPI_IMPL),
    ("Intel(R) MPI", _IMPI_IMPL),
    ("MPICH", _MPICH_IMPL),
    ("HYDRA", _MPICH_IMPL),
)

_ASK_VERSION = "mpirun --version"
_TWO_DASHES_SINCE = 5  # the version of Open MPI

_MPI_NOT_FOUND_ERROR_MSG = (
    "horovod does not find an installed MPI.\n\n"
    "Install Open MPI, IBM Spectrum MPI, Intel MPI or MPICH so that mpirun is in PATH, "
    "or run the job without MPI (horovodrun --gloo)."
)


def _get_mpi_implementation(env: Mapping[str, str] | None = None) -> str:
    answer = tiny_shell_exec.execute(_ASK_VERSION, env)
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


def is_intel_mpi(env: Mapping[str, str] | None = None) -> bool:
    """Whether mpirun is that of Intel MPI."""
    return _get_mpi_implementation(env) == _IMPI_IMPL


is_impi = is_intel_mpi


def _takes_two_dashes(env: Mapping[str, str] | None) -> bool:
    answer = tiny_shell_exec.execute(_ASK_VERSION, env)
    version = None if answer is None else re.search(r"\d+", answer[0])
    return version is not None and int(version[0]) >= _TWO_DASHES_SINCE


def _get_mpi_implementation_flags(
    tcp_flag: bool | None, env: Mapping[str, str] | None = None
) -> tuple[list[str], list[str], str] | tuple[None, None, None]:
    """Flags of the mpirun at hand, how it binds by default, and which one it is; Nones without one."""
    implementation = _get_mpi_implementation(env)
    if implementation == _OMPI_IMPL:
        dash = "--" if _takes_two_dashes(env) else "-"
        flags = [f"{dash}mca pml ob1", f"{dash}mca btl ^openib"]
        return flags, [f"{dash}bind-to none", f"{dash}map-by slot"], implementation
    if implementation == _SMPI_IMPL:
        binding = ["-bind-to socket", "-map-by socket", "-rank-by core"]
        return ["-tcp"] if tcp_flag else [], binding, implementation
    if implementation == _MPICH_IMPL:
        return [], ["-bind-to none", "-map-by slot"], implementation
    if implementation == _IMPI_IMPL:
        return [], [], implementation
    return None, None, None


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


def with_search_paths(env: Mapping[str, str]) -> dict[str, str]:
    """The variables, with this process's places of programs and modules if they name none."""
    own = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**own, **env}


def run_settings(
    controller: str,
    settings: Any,
    nics: set[str] | None,
    env: Mapping[str, str],
    command: Sequence[str],
    more: Sequence[str] = (),
) -> None:
    """Run a job that Settings describe to its end; RuntimeError if it fails."""
    if not isinstance(env, Mapping):
        message = f"env must be a dict, got {type(env).__name__}"
        raise TypeError(message)
    words = [controller, *settings_words(settings, nics), *more, "--", *command]
    ended = run_program(words, with_search_paths(env))
    if ended.code != 0:
        raise RuntimeError(failure_text(ended))


def require_dict(env: Any) -> None:
    """TypeError for os.environ: changes to it would be changes of this process."""
    if not isinstance(env, dict):
        # Names alone: values may be secrets.
        message = f"env argument must be a dict, not {type(env)}: {sorted(env)}"
        raise TypeError(message)


def run_shell_line(line: str, settings: Any, env: dict[str, str], stdout: Any, stderr: Any) -> None:
    """Become the shell line of a launcher; for a function, which gives results, run it to its end."""
    if not settings.run_func_mode:
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve("/bin/sh", ["/bin/sh", "-c", line], env)  # noqa: S606 - the line is shell text
        return  # only where somebody took its place
    code = safe_shell_exec.execute(line, env=env, stdout=stdout, stderr=stderr)
    if code != 0:
        launcher = "jsrun" if line.startswith("jsrun ") else "mpirun"
        message = f"{launcher} failed with exit code {code}"
        raise RuntimeError(message)


def mpi_run(
    settings: Any,
    nics: Collection[str] | None,
    env: dict[str, str],
    command: Sequence[str],
    stdout: Any = None,
    stderr: Any = None,
) -> None:
    """Run the command under mpirun; RuntimeError if that fails.

    Without settings.run_func_mode this process becomes mpirun, and does not come back.
    """
    require_dict(env)
    flags, binding, implementation = _get_mpi_implementation_flags(settings.tcp_flag, env=env)
    if flags is None or binding is None:
        raise RuntimeError(_MPI_NOT_FOUND_ERROR_MSG)
    line = _mpi_line.mpirun_line(
        settings, nics, env, command, flags=flags, binding=binding, implementation=implementation
    )
    run_shell_line(line, settings, with_search_paths(env), stdout, stderr)
