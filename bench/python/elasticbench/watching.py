"""A job whose output is read line by line while it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


class WatchedJob:
    """Starts a job and keeps what it says; ends it in any case."""

    def __init__(self, command: list[str], folder: Path) -> None:
        """Write to a file, which no reader can be too slow for."""
        self._path = folder / "output"
        self._file = self._path.open("wb")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self._process = subprocess.Popen(  # noqa: S603
            command, stdout=self._file, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )

    def lines(self, word: str) -> list[list[int]]:
        """Return the numbers behind that word, line by line."""
        found = []
        for line in self._path.read_text(errors="replace").splitlines():
            text = line.split(">:", 1)[-1].split("]:", 1)[-1].strip()
            if text.startswith(word + " ") and not text.endswith(word):
                found.append([int(number) for number in text.split()[1:]])
        return found

    def wait_for(self, condition: Callable[[], bool], limit_seconds: float = 180) -> None:
        """Look until it holds."""
        deadline = time.monotonic() + limit_seconds
        while not condition():
            if self._process.poll() is not None or time.monotonic() > deadline:
                message = (
                    f"the job {'ended' if self._process.poll() is not None else 'is late'}: {self.tail()}"
                )
                raise RuntimeError(message)
            time.sleep(0.02)

    def finish(self, limit_seconds: float = 120) -> int:
        """Wait for its end."""
        return self._process.wait(limit_seconds)

    def close(self) -> None:
        """Leave nothing behind."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._file.close()

    def tail(self) -> str:
        """Return its last lines."""
        return "\n".join(self._path.read_text(errors="replace").splitlines()[-15:])
