"""Whether other hosts let this user in without a password, asked in the way that horovodrun goes."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Sequence

from ._options import option_words
from ._program import plan
from .util.threads import execute_function_multithreaded

_SECONDS = 60.0
_ATTEMPTS = 5

# Of a network for documentation: never this machine, and no name to look up.
_ELSEWHERE = "192.0.2.1"


def way_to(ssh_port: int | None, ssh_identity_file: str | None) -> list[str]:
    """The words before the name of a host: ssh and its options, or what takes its place."""
    options = argparse.Namespace(
        use_gloo=True,
        num_proc=1,
        hosts=f"{_ELSEWHERE}:1",
        ssh_port=ssh_port,
        ssh_identity_file=ssh_identity_file,
    )
    command: list[str] = plan([*option_words(options), "true"])["hosts"][0]["agent_command"]
    return command[: command.index(_ELSEWHERE)]


def _try(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - the launcher's words
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_SECONDS:.0f} seconds"
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stdout.strip()


def closed_hosts(
    hosts: Sequence[str], ssh_port: int | None = None, ssh_identity_file: str | None = None
) -> dict[str, str]:
    """The hosts that cannot be entered, and why; every one is tried a few times."""
    way = way_to(ssh_port, ssh_identity_file)

    def check(host: str) -> str | None:
        problem: str | None = None
        for _ in range(_ATTEMPTS):
            problem = _try([*way, host.strip("[]"), "true"])
            if problem is None:
                break
        return problem

    answers = execute_function_multithreaded(check, [(host,) for host in hosts]) or {}
    return {hosts[index]: answer for index, answer in answers.items() if answer is not None}
