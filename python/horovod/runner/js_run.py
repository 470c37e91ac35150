"""jsrun, the launcher of LSF clusters, and a command under it.

As in `mpi_run`, the line is composed here because callers replace parts of it. The nodes of the job and
the ranks on them are the answer of horovodrun; with hosts of the caller's, which it does not lay out, the
rank file is written here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._program import plan
from .common.util import safe_shell_exec
from .common.util.hosts import parse_hosts
from .mpi_run import _get_mpi_implementation_flags, run_shell_line, settings_words
from .util import lsf

__all__ = ["generate_jsrun_rankfile", "is_jsrun_installed", "js_run", "lsf", "safe_shell_exec"]

_NOT_FOUND = (
    "horovod does not find the jsrun command.\n\n"
    "It belongs to LSF clusters: run this in a job of one, or choose another launcher "
    "(horovodrun --mpi or --gloo)."
)
_NO_MPI = "horovod does not find an installed MPI, which jsrun needs."


def is_jsrun_installed() -> bool:
    """Whether jsrun is in PATH."""
    return shutil.which("jsrun") is not None


def _rank_file(settings: Any) -> str:
    """The ranks in order, each with an equal share of the processors of its node."""
    gpus = lsf.LSFUtils.get_num_gpus()
    share = lsf.LSFUtils.get_num_cores() * lsf.LSFUtils.get_num_threads() // gpus
    text = "overlapping_rs: allow\ncpu_index_using: logical\n"
    rank = 0
    for host in parse_hosts(settings.hosts):
        if host.slots > gpus:
            message = f"host {host.hostname} has {host.slots} slots, but only {gpus} GPUs"
            raise ValueError(message)
        if rank == settings.num_proc:
            break
        text += "\n"
        for slot in range(min(host.slots, settings.num_proc - rank)):
            processors = f"{slot * share}-{(slot + 1) * share - 1}"
            text += (
                f"rank: {rank}: {{ hostname: {host.hostname}; cpu: {{{processors}}} ; gpu: * ; mem: * }}\n"
            )
            rank += 1
    if rank < settings.num_proc:
        message = f"{settings.num_proc} processes were requested, but the hosts have only {rank} slots"
        raise ValueError(message)
    return text


def generate_jsrun_rankfile(settings: Any, path: str | None = None) -> str:
    """Write the file that gives each rank its processors, and return where it is."""
    if settings.hosts:
        text = _rank_file(settings)
    else:
        text = plan(["--jsrun", *settings_words(settings, None), "true"])["rank_file"]
    if path is None:
        descriptor, path = tempfile.mkstemp(prefix="horovod-rankfile-")
        os.close(descriptor)
    Path(path).write_text(text)
    return path


def js_run(
    settings: Any,
    nics: Collection[str] | None,
    env: Mapping[str, str],
    command: Sequence[str],
    stdout: Any = None,
    stderr: Any = None,
) -> None:
    """Run the command under jsrun; RuntimeError if that fails.

    Without settings.run_func_mode this process becomes jsrun, and does not come back.
    """
    del nics  # jsrun knows the network of its cluster
    if not is_jsrun_installed():
        raise RuntimeError(_NOT_FOUND)
    flags = _get_mpi_implementation_flags(settings.tcp_flag, env=env)[0]
    if flags is None:
        raise RuntimeError(_NO_MPI)
    parts = ["jsrun", settings.binding_args or f"--erf_input {generate_jsrun_rankfile(settings)}"]
    if settings.output_filename:
        parts.append(f"--stdio_stderr {settings.output_filename} --stdio_stdout {settings.output_filename}")
    arguments = " ".join([*flags, *([settings.extra_mpi_args] if settings.extra_mpi_args else [])])
    if arguments:
        quoted = arguments.replace("'", "'\"'\"'")
        parts.append(f"--smpiargs '{quoted}'")
    parts += [shlex.quote(str(word)) for word in command]
    run_shell_line(" ".join(parts), settings, dict(env), stdout, stderr)
