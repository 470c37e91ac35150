"""The command line: `python -m horovod.runner.launch` becomes the native horovodrun."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from horovod.common.util import gloo_built, mpi_built

from ._job import run_program
from ._options import option_words
from ._program import ask, complaint, find_program, plan
from ._run import run_function
from .common.util import network
from .js_run import is_jsrun_installed
from .util import lsf
from .util.threads import execute_function_multithreaded

__all__ = [
    "check_build",
    "gloo_built",
    "is_gloo_used",
    "is_jsrun_installed",
    "lsf",
    "mpi_built",
    "network",
    "parse_args",
    "run_commandline",
    "run_controller",
]

_SSH_CHECK_SECONDS = 60.0


def parse_args(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read a command line (default: sys.argv) as the launcher does, configuration file included.

    ValueError with the launcher's text if it does not understand it. --help, --version and
    --check-build print their text and exit.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    answer = ask(["--plan-json", *words])
    if not answer.startswith("{"):
        sys.stdout.write(answer)
        raise SystemExit(0)
    options = json.loads(answer)["options"]
    options["nics"] = None if options["nics"] is None else set(options["nics"])
    return argparse.Namespace(**options, check_build=False, run_func=None, executable=None)


def check_build(verbose: bool) -> NoReturn:
    """Print which frameworks and libraries can be used, and exit."""
    sys.stdout.write(ask(["--check-build", *(["--verbose"] if verbose else [])]))
    raise SystemExit(0)


def _run(args: Any) -> list[Any] | None:
    """Run the job that the attributes describe; RuntimeError if it fails. Results of args.run_func."""
    func = getattr(args, "run_func", None)
    if func is not None:
        return run_function(args, func, (), {})
    ended = run_program([*option_words(args), "--", *(args.command or [])])
    if ended.code != 0:
        message = f"horovodrun ended with code {ended.code}\n{complaint(ended.last_words)}"
        raise RuntimeError(message)
    return None


def _run_static(args: Any) -> list[Any] | None:
    return _run(args)


def _run_elastic(args: Any) -> list[Any] | None:
    # The launcher knows from the options that the job is elastic.
    return _run(args)


def is_gloo_used(
    use_gloo: bool | None = None, use_mpi: bool | None = None, use_jsrun: bool | None = None
) -> bool:
    """Whether a job with these options would run without MPI."""
    words = [flag for flag, on in (("--gloo", use_gloo), ("--mpi", use_mpi), ("--jsrun", use_jsrun)) if on]
    launcher: str = plan(["--num-proc=1", *words, "true"])["launcher"]
    return launcher == "horovodrun"


def run_controller(
    use_gloo: bool | None,
    gloo_run: Callable[[], Any],
    use_mpi: bool | None,
    mpi_run: Callable[[], Any],
    use_jsrun: bool | None,
    js_run: Callable[[], Any],
    verbosity: int | None,
) -> None:
    """Call the one of the functions that the options, else the launcher, choose."""
    if use_gloo:
        gloo_run()
    elif use_mpi:
        if not mpi_built(verbose=bool(verbosity)):
            message = "MPI was asked for, but no MPI library was found; horovodrun doctor says more"
            raise ValueError(message)
        mpi_run()
    elif use_jsrun:
        if not lsf.LSFUtils.using_lsf():
            message = "jsrun was asked for, but this is no LSF job (LSB_JOBID is not set)"
            raise ValueError(message)
        js_run()
    elif lsf.LSFUtils.using_lsf() and is_jsrun_installed():
        js_run()
    else:
        gloo_run()


def _check_all_hosts_ssh_successful(
    host_addresses: Sequence[str], ssh_port: int | None = None, ssh_identity_file: str | None = None
) -> bool:
    """Whether every host lets this user in; RuntimeError that names the others."""
    options = argparse.Namespace(
        hosts=",".join(f"{host}:1" for host in host_addresses),
        num_proc=len(host_addresses),
        ssh_port=ssh_port,
        ssh_identity_file=ssh_identity_file,
    )
    remote = [host for host in plan([*option_words(options), "true"])["hosts"] if not host["local"]]

    def check(host: dict[str, Any]) -> str | None:
        # All but the last word reach the host, in the way that the launcher would.
        command = [*host["agent_command"][:-1], "true"]
        try:
            done = subprocess.run(  # noqa: S603 - the launcher's words
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SSH_CHECK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{host['name']}: no answer within {_SSH_CHECK_SECONDS:.0f} seconds"
        return None if done.returncode == 0 else f"{host['name']}: {done.stderr.strip()}"

    answers = execute_function_multithreaded(check, [(host,) for host in remote]) or {}
    problems = [answer for answer in answers.values() if answer]
    if problems:
        raise RuntimeError("ssh does not work for: " + "; ".join(problems))
    return True


def run_commandline(arguments: Sequence[str] | None = None) -> NoReturn:
    """Become horovodrun, with these arguments (default: those of this process)."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    program = find_program()
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these, and workers would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    os.execv(program, [program, *words])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    run_commandline()
