"""The process that decides in an elastic job: `horovodrun --decide`, which also runs the job's store.

It has the policy of `horovodrun`, so there is one; src/launch/job/decide_lines.h describes the lines. A
thread puts its answers into the driver's queue; everything else is for the driver's thread.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from horovod._cluster.enter import key_descriptor
from horovod.runner._program import complaint, find_program

_END_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How large an elastic job may be, and how patient."""

    least: int = 1
    first: int = 1
    most: int | None = None
    resets: int | None = None
    timeout_seconds: int | None = None
    cooldown_range: Sequence[int] | None = None
    nics: Collection[str] = ()

    def words(self) -> list[str]:
        """As options of horovodrun."""
        words = ["-np", str(self.first), "--min-np", str(self.least)]
        if self.most is not None:
            words += ["--max-np", str(self.most)]
        if self.resets is not None:
            words += ["--reset-limit", str(self.resets)]
        if self.timeout_seconds is not None:
            words += ["--elastic-timeout", str(self.timeout_seconds)]
        if self.cooldown_range:
            words += ["--blacklist-cooldown-range", *(str(seconds) for seconds in self.cooldown_range)]
        if self.nics:
            words += ["--network-interfaces", ",".join(sorted(self.nics))]
        return words


@dataclass(frozen=True, slots=True)
class Decided:
    """An action; None: the process has ended."""

    action: Mapping[str, Any] | None


class Decider:
    """Runs from its construction until close()."""

    def __init__(self, limits: Limits, key: bytes, answers: queue.Queue[Any]) -> None:
        """Start the process; it ends with this one."""
        self._answers = answers
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        descriptor = key_descriptor(key)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, words are no shell text
                [find_program(), "--decide", *limits.words()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env={**os.environ, "HOROVOD_KEY_FD": str(descriptor)},
                pass_fds=(descriptor,),
                start_new_session=True,  # Ctrl-C is for the driver
            )
        finally:
            os.close(descriptor)
        self._reader = threading.Thread(target=self._read, name="hvd-decider", daemon=True)
        self._reader.start()

    def hosts(self, slots: Mapping[str, int]) -> None:
        """Say which hosts there are, and how many workers each takes."""
        self._say("hosts", *(f"{host}:{count}" for host, count in slots.items()))

    def message(self, worker: int, packet: bytes) -> None:
        """Say what a worker has said."""
        self._say("message", str(worker), packet.hex())

    def end(self, worker: int, code: int, how: str) -> None:
        """Say how a worker has ended; code 0: well."""
        kind = "success" if code == 0 else "failure"
        self._say("end", str(worker), kind, str(min(max(code, 0), 255)), " ".join(how.split()))

    def complaint(self) -> str:
        """Why the process has ended, as far as it said."""
        self._complaints.seek(0)
        said = complaint(self._complaints.read().decode("utf-8", "replace"))
        return said or f"it ended with code {self._process.poll()}"

    def close(self) -> None:
        """End the process."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_END_SECONDS)
        self._complaints.close()

    def _say(self, *words: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        with suppress(OSError):  # its end is in the queue
            self._process.stdin.write((" ".join(words) + "\n").encode())
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(Decided(json.loads(line)))
        self._process.wait()
        self._answers.put(Decided(None))
