"""The native launcher: where it is, and what it says.

Every decision about a job (which ranks run where, what an option means, which variables a worker
gets) is made by that program; the modules of this package ask it with --plan-json.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NAME = "horovodrun"
EXECUTABLE_VARIABLE = "HOROVOD_RUN_EXECUTABLE"

# Names of hosts are resolved for a few seconds at most; mpirun is asked for its version.
_ANSWER_SECONDS = 60.0


def find_program() -> str:
    """The launcher: HOROVOD_RUN_EXECUTABLE, or beside this Python, or the first in PATH."""
    named = os.environ.get(EXECUTABLE_VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            message = f"{EXECUTABLE_VARIABLE} names {named!r}, which is not a program that can be executed"
            raise RuntimeError(message)
        return named
    beside = Path(sys.executable).with_name(NAME)
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which(NAME)
    if found is None:
        message = (
            f"the launcher {NAME} was found neither beside {sys.executable} nor in PATH; "
            f"{EXECUTABLE_VARIABLE} may name it"
        )
        raise RuntimeError(message)
    return found


def complaint(text: str) -> str:
    """What the launcher printed about a mistake, without its own name and the hint at --help."""
    lines = [line.removeprefix(f"{NAME}: ") for line in text.splitlines()]
    return "\n".join(line for line in lines if "--help' shows" not in line).strip()


def ask(words: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """The launcher's answer to a question that starts nothing; ValueError with its text if it refuses."""
    try:
        done = subprocess.run(  # noqa: S603 - our own program, words are no shell text
            [find_program(), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=None if environment is None else dict(environment),
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"{NAME} {' '.join(words)}: no answer within {_ANSWER_SECONDS:.0f} seconds"
        raise RuntimeError(message) from None
    if done.returncode != 0:
        raise ValueError(complaint(done.stderr) or f"{NAME} exited with code {done.returncode}")
    return done.stdout


def plan(words: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the launcher would start for this command line (docs/launch.md describes the keys)."""
    answer: dict[str, Any] = json.loads(ask(["--plan-json", *words], environment))
    return answer
