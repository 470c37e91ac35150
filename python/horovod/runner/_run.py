"""horovod.run: a function on every rank, started by the native launcher."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._failure import failure_text, first_failed_rank, has_joined, headline
from ._job import Ended, run_program
from ._options import TUNABLES, option_words
from ._program import NAME, plan
from ._shipment import FOLDER_VARIABLE, FROM_ENVIRONMENT, Call, load_failures, load_result, store_call

_DIRECTORY_VARIABLE = "HOROVOD_RUN_DIRECTORY"


def _old_name(name: str) -> property:
    """An attribute under the name that it had before."""

    def read(args: _HorovodArgs) -> Any:
        return getattr(args, name)

    def write(args: _HorovodArgs, value: Any) -> None:
        setattr(args, name, value)

    return property(read, write)


class _HorovodArgs:
    """The options of a job, under the names that the command line gives them; None: not given."""

    def __init__(self) -> None:
        self.num_proc: int | None = 1
        self.min_num_proc: int | None = None
        self.max_num_proc: int | None = None
        self.slots: int | None = None
        self.reset_limit: int | None = None
        self.cooldown_range: Sequence[int] | None = None
        self.elastic_timeout: int | None = None
        self.host_discovery_script: str | None = None
        self.join: str | None = None
        self.key_file: str | os.PathLike[str] | None = None
        self.hosts: str | None = None
        self.hostfile: str | None = None
        self.config_file: str | None = None
        self.check_build: bool | None = None
        self.nic: str | None = None
        self.start_timeout: int | None = None
        self.ssh_port: int | None = None
        self.ssh_identity_file: str | None = None
        self.disable_cache: bool | None = None
        self.output_filename: str | None = None
        self.prefix_output_with_timestamp: bool | None = None
        self.verbose: int | bool | None = None
        self.use_gloo: bool | None = None
        self.use_mpi: bool | None = None
        self.use_jsrun: bool | None = None
        self.mpi_args: str | None = None
        self.binding_args: str | None = None
        self.tcp_flag: bool | None = None
        self.nics: set[str] | None = None
        self.executable: str | None = None
        self.command: list[str] | None = None
        self.run_func: Callable[[], Any] | None = None
        for name in TUNABLES:
            setattr(self, name, None)

    np = _old_name("num_proc")
    min_np = _old_name("min_num_proc")
    max_np = _old_name("max_num_proc")


def _shared_parent(planned: Mapping[str, Any]) -> str | None:
    """The folder that all hosts must share; None: this host sees the files, others get them sent."""
    named = os.environ.get(_DIRECTORY_VARIABLE)
    if named:
        if not Path(named).is_dir():
            message = f"{_DIRECTORY_VARIABLE} names {named!r}, which is not a folder"
            raise ValueError(message)
        return named
    is_local = all(host["local"] for host in planned["hosts"])
    if is_local or planned["launcher"] == NAME:
        return None
    # mpirun sends no files. Workers start in the current folder on every host: the likeliest one.
    return str(Path.cwd())


def _raise_failure(folder: Path, ended: Ended, launcher: str) -> None:
    failures = load_failures(folder)
    # The launcher knows about ends without an exception (a signal), which make others raise one.
    named = first_failed_rank(ended)
    if named is not None:
        failures = [failure for failure in failures if failure.rank == named]
    if failures:
        first = failures[0]
        said = headline(launcher, ended.code)
        message = (
            f"{said}: rank {first.rank} on host {first.host} raised {first.summary}\n\n{first.traceback}"
        )
        raise RuntimeError(message) from first.exception()
    if ended.code != 0:
        raise RuntimeError(failure_text(ended, launcher))


def run_function(
    args: Any, func: Callable[..., Any], func_args: Sequence[Any], func_kwargs: Mapping[str, Any]
) -> list[Any]:
    """Run the function in the job that `args` describe, and return what it returned, by rank."""
    executable = getattr(args, "executable", None) or sys.executable
    words = option_words(args)
    planned = plan([*words, "--", executable])
    size = len(planned["ranks"])
    shared = _shared_parent(planned)
    # The first entry may be the folder of the program that called; '' is the current folder everywhere.
    call = Call.of(func, func_args, func_kwargs, [entry for entry in sys.path if entry])
    folder = Path(tempfile.mkdtemp(prefix="horovod-run-", dir=shared))
    try:
        digest = store_call(folder, call)
        environment = {name: value for name, value in os.environ.items() if name != _DIRECTORY_VARIABLE}
        if shared is None:
            # The launcher makes such a folder on every other host, and brings back what ranks leave there.
            environment[FOLDER_VARIABLE] = str(folder)
        place = FROM_ENVIRONMENT if shared is None else str(folder)
        task = [executable, "-m", "horovod.runner.run_task", place, digest]
        ended = run_program([*words, "--", *task], environment)
        if not _is_elastic(args):
            _raise_failure(folder, ended, planned["launcher"])
            return _results(folder, size)
        # Workers may have failed and been replaced: what counts is how the job ended.
        if ended.code != 0:
            _raise_failure(folder, ended, planned["launcher"])
        if has_joined(ended):
            return []
        return _results(folder, args.min_num_proc or args.num_proc or size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_elastic(args: Any) -> bool:
    return bool(args.min_num_proc or args.host_discovery_script or getattr(args, "join", None))


def _check_join(args: _HorovodArgs) -> None:
    """Say what is wrong in the words of the caller; what is wrong with the values, the launcher says."""
    if args.join is None and args.key_file is None:
        return
    if args.join is None:
        message = "key_file belongs to join='host:port', which is missing"
        raise ValueError(message)
    if args.key_file is None:
        message = "join needs key_file, by which the hosts of the job know each other: 32 random bytes"
        raise ValueError(message)
    others = ("hosts", "hostfile", "host_discovery_script", "use_mpi")
    given = [name for name in others if getattr(args, name)]
    if given:
        message = f"give join or {given[0]}, not both: with join the hosts come by themselves"
        raise ValueError(message)


def _results(folder: Path, size: int) -> list[Any]:
    results = []
    for rank in range(size):
        try:
            results.append(load_result(folder, rank))
        except FileNotFoundError:
            message = f"horovod.run: rank {rank} ended without a result: it left before the function returned"
            raise RuntimeError(message) from None
    return results


def _renamed(old: str, old_value: Any, new: str, new_value: Any, default: Any = None) -> Any:
    """The value under its new name, unless that was not given and the old one was."""
    if old_value is None:
        return new_value
    # Of the caller of run().
    warnings.warn(f"{old} is deprecated, use {new} instead", DeprecationWarning, stacklevel=3)
    return old_value if new_value == default else new_value


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int | None = 1,
    min_num_proc: int | None = None,
    max_num_proc: int | None = None,
    slots: int | None = None,
    reset_limit: int | None = None,
    cooldown_range: Sequence[int] | None = None,
    hosts: str | None = None,
    hostfile: str | None = None,
    host_discovery_script: str | None = None,
    start_timeout: int | None = None,
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    disable_cache: bool | None = None,
    output_filename: str | None = None,
    verbose: int | bool | None = None,
    use_gloo: bool | None = None,
    use_mpi: bool | None = None,
    mpi_args: str | None = None,
    network_interface: str | None = None,
    network_interfaces: Sequence[str] | str | None = None,
    executable: str | None = None,
    np: int | None = None,
    min_np: int | None = None,
    max_np: int | None = None,
    *,
    join: str | None = None,
    key_file: str | os.PathLike[str] | None = None,
) -> list[Any]:
    """Call the function on every rank of a new job, and return the results by rank.

    The options are those of `horovodrun`. The function travels with cloudpickle: in a private
    folder on this machine, over ssh to other hosts, which need not share a folder. An exception of a rank
    ends the job and is raised as a RuntimeError with its traceback; the cause is the exception.
    `executable` is the Python of the workers.

    `join="host:port"` with `key_file` makes an elastic job without ssh: every host calls this function, the
    one of that name launches the job, the others join it with `slots` workers each, now or later. Where it
    is launched the results are returned, elsewhere an empty list when the job is over.
    """
    num_proc = _renamed("np", np, "num_proc", num_proc, default=1)
    min_num_proc = _renamed("min_np", min_np, "min_num_proc", min_num_proc)
    max_num_proc = _renamed("max_np", max_np, "max_num_proc", max_num_proc)
    nics = _renamed("network_interface", network_interface, "network_interfaces", network_interfaces)
    if hosts is not None and hostfile is not None:
        message = "give hosts or hostfile, not both"
        raise ValueError(message)
    if use_gloo and use_mpi:
        message = "give use_gloo or use_mpi, not both"
        raise ValueError(message)

    options = _HorovodArgs()
    options.num_proc = num_proc
    options.min_num_proc = min_num_proc
    options.max_num_proc = max_num_proc
    options.slots = slots
    options.reset_limit = reset_limit
    options.cooldown_range = cooldown_range
    options.hosts = hosts
    options.hostfile = hostfile
    options.host_discovery_script = host_discovery_script
    options.join = join
    options.key_file = key_file
    options.start_timeout = start_timeout
    options.ssh_port = ssh_port
    options.ssh_identity_file = ssh_identity_file
    options.disable_cache = disable_cache
    options.output_filename = output_filename
    options.verbose = verbose
    options.use_gloo = use_gloo
    options.use_mpi = use_mpi
    options.mpi_args = mpi_args
    options.executable = executable
    if nics is not None:
        options.nics = {nic.strip() for nic in (nics.split(",") if isinstance(nics, str) else nics)}
    _check_join(options)
    return run_function(options, func, args, kwargs or {})
