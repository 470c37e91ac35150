"""A job as a child process: the launcher runs for as long as this process wants it to."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, TextIO

from ._program import find_program

_TAIL_CHARACTERS = 8192
_DRAIN_SECONDS = 5.0

# A signal that comes just before a wait begins, or to another thread, does not end the wait; its handler
# runs when the main thread looks again.
_LOOK_SECONDS = 1.0

# Becomes the launcher. If this process dies in whatever way, the kernel sends SIGTERM to the launcher,
# which then ends the job everywhere. A program of its own, since code between fork and exec could
# deadlock in a process with threads. Python ignores SIGPIPE and SIGXFSZ; workers must not inherit that.
_STARTER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(128 + signal.SIGTERM)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Ended:
    """How the launcher ended, and the last it said."""

    code: int
    last_words: str


class _Copier:
    """A thread that copies what the launcher prints, and keeps the end of it."""

    def __init__(self, source: IO[bytes], destination: TextIO) -> None:
        self.tail = ""
        # newline="": a carriage return ends a line and stays one, so that progress bars move.
        self._source = io.TextIOWrapper(source, encoding="utf-8", errors="replace", newline="")
        self._destination = destination
        self._thread = threading.Thread(target=self._copy, name="hvd-run-output", daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        with self._source:
            for line in self._source:
                self.tail = (self.tail + line)[-_TAIL_CHARACTERS:]
                # A reader that went away costs the output, not the job.
                with suppress(OSError, ValueError):
                    self._destination.write(line)
                    self._destination.flush()

    def finish(self) -> str:
        """Wait for the end of the output, but not for processes that others left holding it open."""
        self._thread.join(_DRAIN_SECONDS)
        return self.tail


def _is_descriptor(stream: TextIO, number: int) -> bool:
    try:
        return stream.fileno() == number
    except (OSError, ValueError, AttributeError):
        return False  # replaced, as in notebooks


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end. An interruption ends the job, and is raised when that has happened."""
    interruption: BaseException | None = None
    while True:
        try:
            code = process.wait(_LOOK_SECONDS)
            break
        except subprocess.TimeoutExpired:
            pass
        except BaseException as error:  # noqa: BLE001 - raised below
            # The launcher gives workers their grace at the first signal, and kills at the second.
            process.send_signal(signal.SIGINT)
            interruption = error
    if interruption is not None:
        raise interruption
    return code


def run_program(words: Sequence[str], environment: Mapping[str, str] | None = None) -> Ended:
    """Run the launcher to its end; its output appears on sys.stdout and sys.stderr."""
    sys.stdout.flush()
    sys.stderr.flush()
    copies_output = not _is_descriptor(sys.stdout, 1)
    streams: dict[str, Any] = {"stdout": subprocess.PIPE} if copies_output else {}
    starter = [sys.executable, "-I", "-S", "-c", _STARTER, str(os.getpid())]
    process = subprocess.Popen(  # noqa: S603 - our own program, words are no shell text
        [*starter, find_program(), *words],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=None if environment is None else dict(environment),
        # Ctrl-C comes to this process alone, which passes it on once.
        start_new_session=True,
        **streams,
    )
    copiers = []
    if process.stdout is not None:
        copiers.append(_Copier(process.stdout, sys.stdout))
    if process.stderr is not None:
        copiers.append(_Copier(process.stderr, sys.stderr))
    try:
        code = _wait(process)
    finally:
        tails = [copier.finish() for copier in copiers]
    return Ended(code if code >= 0 else 128 - code, tails[-1])
