"""A short shell command, and what it printed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

_SECONDS = 60.0


def execute(command: str, env: Mapping[str, str] | None = None) -> tuple[str, int] | None:
    """Output (both streams) and exit code; None if the command could not be run or did not end."""
    try:
        done = subprocess.run(  # noqa: S602 - the caller gives a shell command
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=None if env is None else dict(env),
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout, done.returncode
