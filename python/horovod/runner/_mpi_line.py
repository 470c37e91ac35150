"""The shell line that mpirun gets from `mpi_run`.

horovodrun composes its own. This one exists because programs that call `mpi_run` pass flags of the
MPI at hand and variables of theirs, and compare or parse the text: it carries what they gave, no more.
Parts are separated by one space each, empty ones included.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from shlex import quote
from typing import Any

from .common.util.env import is_exportable
from .common.util.hosts import parse_hosts

OMPI_IMPL = "OpenMPI"
SMPI_IMPL = "SpectrumMPI"
MPICH_IMPL = "MPICH"
IMPI_IMPL = "IntelMPI"

LARGE_CLUSTER_THRESHOLD = 64

_HYDRA = (MPICH_IMPL, IMPI_IMPL)
_HARMLESS = re.compile(r"[\w@%+=:,./ -]*", re.ASCII)


def _hydra_hosts(hosts: str) -> str:
    """The MPICH family takes one number of slots for all hosts."""
    parsed = parse_hosts(hosts)
    if len({host.slots for host in parsed}) != 1:
        message = f"mpirun of the MPICH family needs the same number of slots on every host, got {hosts}"
        raise ValueError(message)
    return f"-ppn {parsed[0].slots} -hosts {quote(','.join(host.hostname for host in parsed))}"


def _ssh_arguments(settings: Any) -> str:
    words = []
    if settings.ssh_port:
        words.append(f"-p {settings.ssh_port}")
    if settings.ssh_identity_file:
        words.append(f"-i {settings.ssh_identity_file}")
    line = " ".join(words)
    # Double quotes, as the original writes it, where a shell reads nothing inside them.
    if _HARMLESS.fullmatch(line):
        return f'"{line}"' if line else ""
    return quote(line)


def _hydra_parts(
    settings: Any, hosts: str, nics: Sequence[str], implementation: str
) -> tuple[str, list[str], list[str]]:
    if len(nics) > 1:
        message = f"mpirun of the MPICH family takes one network interface, got {','.join(nics)}"
        raise ValueError(message)
    ssh = _ssh_arguments(settings)
    program, ssh_flags = "mpirun", ""
    if ssh and implementation == MPICH_IMPL:
        # MPICH has no flag for the arguments of ssh, and refuses that of Intel MPI.
        program, ssh_flags = f"HYDRA_LAUNCHER_EXTRA_ARGS={ssh} mpirun", "-bootstrap=ssh"
    elif ssh:
        ssh_flags = f"-bootstrap=ssh -bootstrap-exec-args {ssh}"
    before = ["-l", f"-np {settings.num_proc}", _hydra_hosts(hosts)]
    after = [
        ssh_flags,
        f"-iface {quote(nics[0])}" if nics else "",
        f"-genv NCCL_SOCKET_IFNAME={quote(nics[0])}" if nics else "",
        f"-outfile-pattern {settings.output_filename}" if settings.output_filename else "",
        "",  # it exports every variable by itself
    ]
    return program, before, after


def _open_parts(
    settings: Any, hosts: str, nics: Sequence[str], variables: Iterable[str], flags: list[str]
) -> tuple[list[str], list[str]]:
    # Version 5 takes long flags with two dashes alone, and its own flags come so.
    is_five = any(flag.startswith("--mca ") for flag in flags)
    mca, shell = ("--mca", "plm_ssh") if is_five else ("-mca", "plm_rsh")
    names = [item.rsplit(":", 1)[0] for item in hosts.split(",")]
    if len(names) >= LARGE_CLUSTER_THRESHOLD:
        flags += [f"{mca} plm_rsh_no_tree_spawn true", f"{mca} plm_rsh_num_concurrent {len(names)}"]
    ssh = _ssh_arguments(settings)
    output = [f"--output-filename {settings.output_filename}"] if settings.output_filename else []
    if settings.prefix_output_with_timestamp:
        output.append("--timestamp-output")
    interfaces = quote(",".join(nics))
    before = ["--allow-run-as-root --tag-output", f"-np {settings.num_proc}", f"-H {quote(hosts)}"]
    after = [
        f"{mca} {shell}_args {ssh}" if ssh else "",
        f"{mca} btl_tcp_if_include {interfaces}" if nics else "",
        f"-x NCCL_SOCKET_IFNAME={interfaces}" if nics else "",
        " ".join(output),
        " ".join(f"-x {name}" for name in sorted(variables) if is_exportable(name) and name.isidentifier()),
    ]
    return before, after


def mpirun_line(
    settings: Any,
    nics: Collection[str] | None,
    variables: Iterable[str],
    command: Sequence[str],
    *,
    flags: Sequence[str],
    binding: Sequence[str],
    implementation: str | None,
) -> str:
    """The line for an mpirun of the implementation (None: like Open MPI), which has the flags and binding."""
    hosts = settings.hosts or f"localhost:{settings.num_proc}"
    chosen = sorted(nics or settings.nics or ())
    own = list(flags)
    program = "mpirun"
    if implementation in _HYDRA:
        program, before, after = _hydra_parts(settings, hosts, chosen, implementation)
    else:
        before, after = _open_parts(settings, hosts, chosen, variables, own)
    parts = [
        program,
        *before,
        settings.binding_args or " ".join(binding),
        " ".join(own),
        *after,
        settings.extra_mpi_args or "",
        " ".join(quote(str(word)) for word in command),
    ]
    return " ".join(parts)
