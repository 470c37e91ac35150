"""Starts the processes and jobs that measure."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TIMEOUT_SECONDS: Final = 900


@dataclass(frozen=True, slots=True)
class Launcher:
    """Knows the interpreter and the horovodrun beside it; one compute thread per process."""

    python: Path
    horovodrun: Path
    environment: Mapping[str, str]

    def run_alone(self, module: str, *arguments: str) -> None:
        """Run a module of this package in a process of its own."""
        self._run([str(self.python), "-m", module, *arguments], {})

    def run_job(self, np: int, module: str, *arguments: str, extra: Mapping[str, str] | None = None) -> None:
        """Run a module of this package as a job."""
        command = [str(self.horovodrun), "-np", str(np), str(self.python), "-m", module, *arguments]
        self._run(command, extra or {})

    def _run(self, command: list[str], extra: Mapping[str, str]) -> None:
        environment = {**os.environ, **self.environment, **extra}
        subprocess.run(command, env=environment, check=True, timeout=_TIMEOUT_SECONDS)  # noqa: S603
