"""The command line: `python -m horovod.runner.launch` becomes the native horovodrun."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from horovod.common.util import gloo_built, mpi_built

from ._failure import failure_text
from ._job import run_program
from ._options import option_words, parsed_options
from ._program import NAME, ask, find_program, plan
from ._run import _HorovodArgs, run_function
from ._ssh_check import closed_hosts
from .common.util import config_parser, hosts, safe_shell_exec, secret, timeout
from .common.util import settings as hvd_settings
from .common.util.hosts import parse_host_files, parse_hosts_and_slots
from .common.util.settings import Settings
from .driver import driver_service
from .elastic import discovery, driver
from .elastic import settings as elastic_settings
from .elastic._host_file import discovery_environment
from .gloo_run import gloo_run, gloo_run_elastic
from .http.http_client import put_data_into_kvstore, read_data_from_kvstore
from .http.http_server import KVStoreServer
from .js_run import is_jsrun_installed, js_run
from .mpi_run import mpi_run
from .util import cache, lsf, network, threads
from .util.remote import get_remote_command

__all__ = [
    "KVStoreServer",
    "cache",
    "check_build",
    "config_parser",
    "discovery",
    "driver",
    "driver_service",
    "elastic_settings",
    "get_remote_command",
    "gloo_built",
    "gloo_run",
    "gloo_run_elastic",
    "hosts",
    "hvd_settings",
    "is_gloo_used",
    "is_jsrun_installed",
    "js_run",
    "lsf",
    "mpi_built",
    "mpi_run",
    "network",
    "parse_args",
    "put_data_into_kvstore",
    "read_data_from_kvstore",
    "run_commandline",
    "run_controller",
    "safe_shell_exec",
    "secret",
    "threads",
    "timeout",
]

_NO_GLOO = (
    "Gloo support has not been built.  If this is not expected, ensure CMake is installed "
    "and reinstall Horovod with HOROVOD_WITH_GLOO=1 to debug the build error."
)
_NO_MPI = (
    "MPI support has not been built.  If this is not expected, ensure MPI is installed "
    "and reinstall Horovod with HOROVOD_WITH_MPI=1 to debug the build error."
)
_NO_LSF = (
    "Horovod did not detect an LSF job.  The jsrun launcher can only be used in that environment. "
    "Please, pick a different launcher for other environments."
)
_NO_CONTROLLER = (
    "Neither MPI nor Gloo support has been built. Try reinstalling Horovod ensuring that "
    "either MPI is installed (MPI) or CMake is installed (Gloo)."
)

_USAGE = f"{NAME} -np N [options] command [args...]"

_ALL_LINES = 2  # the level of --verbose


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read a command line (default: sys.argv) as the launcher does, configuration file included.

    Hosts, host file and mpirun are looked at when the job is run. Words that the launcher does not
    understand are told on stderr, and the process exits with 2, as programs with argparse do; a value
    that it refuses, or a configuration file, is a ValueError. --help, --version and --check-build print
    their text and exit.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        answer = ask(["--parse-json", *words])
    except ValueError as mistake:  # of words; what is wrong with values is part of the answer
        argparse.ArgumentParser(prog=NAME, usage=_USAGE).error(str(mistake))
    if not answer.startswith("{"):
        sys.stdout.write(answer)
        raise SystemExit(0)
    parsed = json.loads(answer)
    if parsed["problem"] is not None:
        raise ValueError(parsed["problem"])
    options = parsed_options(parsed)
    return argparse.Namespace(**options, check_build=False, run_func=None, executable=None)


def check_build(verbose: bool) -> NoReturn:
    """Print which frameworks and libraries can be used, and exit."""
    sys.stdout.write(ask(["--check-build", *(["--verbose"] if verbose else [])]))
    raise SystemExit(0)


def _say(args: Any, text: str) -> None:
    """One of the lines of --verbose, which programs look for."""
    verbose = getattr(args, "verbose", None)
    if verbose is True or (verbose or 0) >= _ALL_LINES:
        sys.stdout.write(text + "\n")


def _changed(args: Any, **changes: Any) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(args), **changes})


def _find_hosts(args: Any) -> tuple[str, int | None]:
    """The hosts as 'host1:2,host2:4', and the number of processes on them."""
    if args.hosts:
        return args.hosts, args.num_proc
    if args.hostfile:
        return parse_host_files(args.hostfile), args.num_proc
    if lsf.LSFUtils.using_lsf():
        names, slots = lsf.LSFUtils.get_compute_hosts(), lsf.LSFUtils.get_num_gpus()
        return ",".join(f"{name}:{slots}" for name in names), args.num_proc or len(names) * slots
    # Other schedulers name hosts too.
    planned = plan([*option_words(_changed(args, use_gloo=True, use_mpi=None, use_jsrun=None)), "true"])
    if planned["hosts_source"] == "this machine":
        return f"localhost:{len(planned['ranks'])}", len(planned["ranks"])
    return ",".join(f"{host['name']}:{host['slots']}" for host in planned["hosts"]), len(planned["ranks"])


def _find_nics(args: Any, remote: Sequence[str]) -> set[str] | None:
    """The interfaces to use; None: the launcher finds them."""
    given = set(args.nics or ())
    if remote:
        return given or None
    _say(args, "All hosts are local, finding the interfaces with address 127.0.0.1")
    found = network.get_local_intfs()
    chosen = found & given if given else found
    if not chosen:
        message = f"no interface has the address 127.0.0.1{f' among {sorted(given)}' if given else ''}"
        raise ValueError(message)
    _say(args, "Local interface found " + " ".join(sorted(chosen)))
    return chosen


def _settings(args: Any, hosts: str | None, num_proc: int | None) -> Settings:
    return Settings(
        hosts=hosts,
        num_proc=num_proc,
        verbose=_ALL_LINES if args.verbose else 0,
        ssh_port=args.ssh_port,
        ssh_identity_file=args.ssh_identity_file,
        extra_mpi_args=args.mpi_args,
        tcp_flag=args.tcp_flag,
        binding_args=args.binding_args,
        output_filename=args.output_filename,
        run_func_mode=args.run_func is not None,
        nics=args.nics or None,
        prefix_output_with_timestamp=bool(args.prefix_output_with_timestamp),
    )


def _run_as_planned(args: Any, environment: Mapping[str, str] | None = None) -> list[Any] | None:
    """Let horovodrun run the job; RuntimeError if it fails. Results of args.run_func."""
    if args.run_func is not None:
        return run_function(args, args.run_func, (), {})
    words = [*option_words(args), "--", *(args.command or [])]
    plan(words)  # mistakes are a ValueError, not a job that failed
    ended = run_program(words, environment)
    if ended.code != 0:
        raise RuntimeError(failure_text(ended))
    return None


def _run_static(args: Any) -> list[Any] | None:
    hosts, num_proc = _find_hosts(args)
    remote = network.filter_local_addresses(list(dict.fromkeys(parse_hosts_and_slots(hosts)[0])))
    _say(args, "Remote host found: " + " ".join(remote))
    # Schedulers have ways of their own to the hosts that they give.
    if remote and (args.hosts or args.hostfile):
        _say(args, "Checking ssh on all remote hosts.")
        if not _check_all_hosts_ssh_successful(remote, args.ssh_port, args.ssh_identity_file):
            message = f"could not connect to some hosts via ssh: {' '.join(remote)}"
            raise RuntimeError(message)
        _say(args, "SSH was successful into all the remote hosts.")
    nics = None if lsf.LSFUtils.using_lsf() else _find_nics(args, remote)
    results: list[Any] | None = None

    def run_as_planned(controller: str) -> None:
        nonlocal results
        # horovodrun finds hosts and interfaces by itself, from the same options.
        others = dict.fromkeys(("use_gloo", "use_mpi", "use_jsrun"))
        results = _run_as_planned(_changed(args, **{**others, controller: True}))

    def run_under(controller: str, launcher: Callable[..., None]) -> None:
        if args.run_func is not None:
            run_as_planned(controller)
            return
        env = dict(os.environ)
        config_parser.set_env_from_args(env, args)
        # jsrun gets the nodes of its job from the launcher unless others are named.
        is_named = launcher is not js_run or args.hosts or args.hostfile
        settings = _settings(args, hosts if is_named else None, num_proc)
        launcher(settings, nics, env, args.command or [])

    run_controller(
        args.use_gloo,
        lambda: run_as_planned("use_gloo"),
        args.use_mpi,
        lambda: run_under("use_mpi", mpi_run),
        args.use_jsrun,
        lambda: run_under("use_jsrun", js_run),
        args.verbose,
    )
    return results


def _run_elastic(args: Any) -> list[Any] | None:
    """The launcher knows from the options that the job is elastic; here it follows the original's rules."""
    changes: dict[str, Any] = {"whole_hosts": True}
    if args.elastic_timeout is None and "HOROVOD_ELASTIC_TIMEOUT" not in os.environ:
        # Programs replace the number.
        changes["elastic_timeout"] = driver.ELASTIC_TIMEOUT_SECS
    return _run_as_planned(_changed(args, **changes), discovery_environment(os.environ))


def _run(args: Any) -> list[Any] | None:
    """Run the job that the attributes describe; RuntimeError if it fails. Results of args.run_func.

    A command under MPI takes the place of this process.
    """
    complete = _changed(_HorovodArgs(), **vars(args))
    if complete.host_discovery_script or complete.min_num_proc:
        return _run_elastic(complete)
    return _run_static(complete)


def is_gloo_used(
    use_gloo: bool | None = None, use_mpi: bool | None = None, use_jsrun: bool | None = None
) -> bool:
    """Whether `run_controller` would choose gloo_run; it may refuse MPI all the same."""
    if use_gloo or use_mpi or use_jsrun:
        return bool(use_gloo)
    return gloo_built() and not mpi_built()


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def run_controller(
    use_gloo: bool | None,
    gloo_run: Callable[[], Any],
    use_mpi: bool | None,
    mpi_run: Callable[[], Any],
    use_jsrun: bool | None,
    js_run: Callable[[], Any],
    verbosity: int | None,
) -> None:
    """Call the one of the functions that the options choose; without any: MPI if it is there.

    horovodrun prefers to do without MPI. Callers of this function rely on the other order, and on the
    texts of the errors.
    """
    verbose = bool(verbosity and verbosity >= _ALL_LINES)
    if use_gloo:
        _require(gloo_built(verbose=verbose), _NO_GLOO)
        gloo_run()
    elif use_mpi:
        _require(mpi_built(verbose=verbose), _NO_MPI)
        mpi_run()
    elif use_jsrun:
        _require(mpi_built(verbose=verbose), _NO_MPI)
        _require(lsf.LSFUtils.using_lsf(), _NO_LSF)
        js_run()
    elif mpi_built(verbose=verbose):
        if lsf.LSFUtils.using_lsf() and is_jsrun_installed():
            js_run()
        else:
            mpi_run()
    else:
        _require(gloo_built(verbose=verbose), _NO_CONTROLLER)
        gloo_run()


def _check_all_hosts_ssh_successful(
    host_addresses: Sequence[str],
    ssh_port: int | None = None,
    ssh_identity_file: str | None = None,
    fn_cache: Any = None,
) -> bool:
    """Whether every host lets this user in; prints why others do not. A cache remembers success."""
    key = f"ssh {','.join(host_addresses)} {ssh_port} {ssh_identity_file}"
    if fn_cache is not None and fn_cache.get(key):
        return True
    closed = closed_hosts(host_addresses, ssh_port, ssh_identity_file)
    for host, why in closed.items():
        sys.stdout.write(f"ssh not successful for host {host}:\n{why}\n")
    if fn_cache is not None and not closed:
        fn_cache.put(key, True)
    return not closed


def run_commandline(arguments: Sequence[str] | None = None) -> None:
    """Run the job of a command line (default: that of this process); RuntimeError if it fails.

    What --help and the like print is printed, and the process exits, as of `parse_args`.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    args = parse_args(words)
    if args.host_discovery_script or args.min_num_proc:
        _run_elastic(args)
        return
    ended = run_program(words)
    if ended.code != 0:
        raise RuntimeError(failure_text(ended))


def _become_launcher() -> NoReturn:
    """Become horovodrun, with the arguments of this process."""
    program = find_program()
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these, and workers would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execv(program, [program, *sys.argv[1:]])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    _become_launcher()
