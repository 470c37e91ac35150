"""The driver's console: shows what ranks print, knows which of them have started, and lets tasks meet.

A server on the addresses of the driver that answers only those with the key of the job; what it takes is
JSON. Threads of the server call `_answer`; everything else is for the thread that runs the job.
"""

from __future__ import annotations

import hashlib
import hmac
import sys
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, TextIO

from horovod._cluster.failures import Failure
from horovod.runner.common.service._server import Server

from ._failure_text import from_json

_STREAMS = ("stdout", "stderr", "log")
# A task that does not come to the meeting cannot reach the console; then all go to Spark's own.
MEETING_SECONDS = 30.0
_MOST_MEETING = 200  # whose introductions fit into one message
# A line comes in pieces and is shown whole, so that lines of ranks never mix; no longer than this.
_LONGEST_LINE = 1 << 20


def console_key(job_key: bytes) -> bytes:
    """The key of the console: not that of the job, which is for the ranks."""
    return hmac.new(job_key, b"horovod spark console", hashlib.sha256).digest()


class Console:
    """Shows output from its construction until close()."""

    def __init__(
        self,
        key: bytes,
        nics: Collection[str],
        stdout: TextIO | None,
        stderr: TextIO | None,
        with_timestamp: bool,
        size: int,
        meeting_seconds: float = MEETING_SECONDS,
    ) -> None:
        """Listen; without streams, output goes to those of this process as they are when it comes."""
        self._stdout = stdout
        self._stderr = stderr
        self._with_timestamp = with_timestamp
        self._size = size
        self._meeting_seconds = meeting_seconds
        self._lock = threading.Lock()  # guards what is below, and keeps lines whole
        self._changed = threading.Condition(self._lock)
        self._introductions: dict[int, str] = {}
        self._gave_up = size > _MOST_MEETING
        self._ready: set[int] = set()
        self._failures: dict[int, Failure] = {}
        self._open_lines: dict[tuple[int, str], str] = {}
        self._server = Server("spark console", console_key(key), nics or None, self._answer)

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        """Where tasks find it, by interface."""
        return self._server.addresses()

    def ready_ranks(self) -> int:
        """How many ranks have said that they have their place."""
        with self._lock:
            return len(self._ready)

    def failures(self) -> list[Failure]:
        """What ranks said about their failures."""
        with self._lock:
            return list(self._failures.values())

    def close(self) -> None:
        """Take no more output; a line whose rest never came is shown as far as it did."""
        with self._lock:
            self._give_up()
        self._server.close()
        with self._lock:
            for (rank, stream), text in self._open_lines.items():
                if text:
                    self._show(rank, stream, f"{text}\n")
            self._open_lines.clear()

    def _answer(self, question: Any) -> Any:
        if not isinstance(question, dict):
            message = f"expected an object, got {type(question).__name__}"
            raise ValueError(message)  # noqa: TRY004 - a mistake in data, not in a program
        if question.get("call") == "lines":
            rank = int(question["rank"])
            with self._lock:
                for stream, text in question["lines"]:
                    self._take(rank, str(stream), str(text))
        if question.get("call") == "meet":
            return {"introductions": self._meet(int(question["task"]), str(question["introduction"]))}
        return {}

    def _give_up(self) -> None:
        if len(self._introductions) < self._size:
            self._gave_up = True
            self._changed.notify_all()

    def _meet(self, task: int, introduction: str) -> list[str] | None:
        """The introductions of all tasks when all are here; None for all of them if some do not come."""
        end = time.monotonic() + self._meeting_seconds
        with self._lock:
            if self._gave_up:
                return None
            self._introductions[task] = introduction
            self._changed.notify_all()
            while len(self._introductions) < self._size and not self._gave_up:
                if not self._changed.wait(max(0.0, end - time.monotonic())):
                    self._give_up()
            return None if self._gave_up else [self._introductions[at] for at in range(self._size)]

    def _take(self, rank: int, stream: str, text: str) -> None:
        if stream == "ready":
            self._ready.add(rank)
        elif stream == "failure":
            self._failures[rank] = from_json(text)
        elif stream in _STREAMS:
            line = self._open_lines.pop((rank, stream), "") + text
            if line.endswith(("\n", "\r")):
                self._show(rank, stream, line)
            elif len(line) > _LONGEST_LINE:
                self._show(rank, stream, f"{line}\n")
            else:
                self._open_lines[rank, stream] = line

    def _show(self, rank: int, stream: str, line: str) -> None:
        where = (self._stderr or sys.stderr) if stream == "stderr" else (self._stdout or sys.stdout)
        prefix = "" if stream == "log" else self._prefix(rank, stream)
        # A reader that went away costs the output, not the job.
        with suppress(OSError, ValueError):
            where.write(prefix + line)
            where.flush()

    def _prefix(self, rank: int, stream: str) -> str:
        return f"{time.asctime() if self._with_timestamp else ''}[{rank}]<{stream}>:"
