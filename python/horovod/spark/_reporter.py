"""The task's end of the driver's console: sends what a rank prints, in order, from a thread of its own.

Where the console cannot be reached (a client of Spark Connect behind a firewall), output goes to the log of
the executor. May block its callers while the driver is slow to take lines; never longer than _SEND_SECONDS.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from horovod.runner.common.service._client import Client
from horovod.runner.common.util.network import NoValidAddressesFound

from ._console import MEETING_SECONDS

_MOST_WAITING = 1000
_SEND_SECONDS = 30.0
_END_SECONDS = 10.0
_FIND_SECONDS = 10.0
# JSON may make six characters of one, and a message has 64 KiB at most.
_MOST_CHARACTERS = 8 * 1024

Line = tuple[str, str]
"""The name of a stream, and text for it."""


class Reporter:
    """One for each task; `line` may be called by any thread, after `ready`."""

    def __init__(self, addresses: Mapping[str, Sequence[tuple[str, int]]], key: bytes) -> None:
        """Start the thread, which looks for the console at once."""
        self._addresses = {name: [tuple(pair) for pair in pairs] for name, pairs in addresses.items()}
        self._key = key
        self._rank = -1
        self._has_console = False  # written by the thread, read after its end
        self._client: Client | None = None
        self._looked = threading.Event()  # publishes _client
        self._waiting: queue.Queue[Line | None] = queue.Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="hvd-spark-output", daemon=True)
        self._thread.start()

    def meet(self, task: int, introduction: str) -> list[str] | None:
        """Exchange introductions with all tasks at the console; None: they must meet elsewhere."""
        if not self._looked.wait(_FIND_SECONDS) or self._client is None:
            return None
        question = {"call": "meet", "task": task, "introduction": introduction}
        try:
            answer = self._client.ask(question, MEETING_SECONDS)
        except (OSError, ValueError):
            return None
        texts = answer.get("introductions") if isinstance(answer, dict) else None
        return None if texts is None else [str(text) for text in texts]

    def ready(self, rank: int) -> None:
        """Tell the driver that this rank has its place."""
        self._rank = rank
        self._waiting.put(("ready", ""))

    def line(self, stream: str, text: str) -> None:
        """Send text of stdout, stderr or log."""
        for start in range(0, len(text), _MOST_CHARACTERS):
            with suppress(queue.Full):
                self._waiting.put((stream, text[start : start + _MOST_CHARACTERS]), timeout=_SEND_SECONDS)

    def fail(self, failure: str) -> None:
        """Send why the rank failed, as JSON."""
        self._waiting.put(("failure", failure))

    def close(self) -> bool:
        """Send what is left, as far as it goes in some seconds; whether the console has all of it."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=_END_SECONDS)
            self._thread.join(_END_SECONDS)
        return self._has_console and not self._thread.is_alive()

    def _run(self) -> None:
        client: Client | None = None
        if self._addresses:
            with suppress(NoValidAddressesFound):
                client = Client("the driver's console", self._addresses, self._key)  # type: ignore[arg-type]
        self._client = client
        self._looked.set()
        self._has_console = client is not None
        ended = False
        while not ended:
            lines, ended = self._next_lines()
            if client is not None and self._has_console:
                self._has_console = self._send(client, lines)
            else:
                self._print(lines)

    def _next_lines(self) -> tuple[list[Line], bool]:
        """Wait for lines, and take those that are there, as many as a message holds."""
        lines: list[Line] = []
        characters = 0
        item = self._waiting.get()
        while item is not None:
            lines.append(item)
            characters += len(item[1]) + 16
            if characters >= _MOST_CHARACTERS or self._waiting.empty():
                return lines, False
            item = self._waiting.get()
        return lines, True

    def _send(self, client: Client, lines: Sequence[Line]) -> bool:
        if not lines:
            return True
        question: dict[str, Any] = {"call": "lines", "rank": self._rank, "lines": lines}
        try:
            client.ask(question, _SEND_SECONDS)
        except (OSError, ValueError) as error:
            print(f"horovod.spark: {error}", file=sys.stderr)  # noqa: T201 - the log of the executor
            self._print(lines)
            return False
        return True

    def _print(self, lines: Sequence[Line]) -> None:
        for stream, text in lines:
            if stream not in {"ready", "failure"}:
                sys.stderr.write(f"[{self._rank}]<{stream}>:{text}")
        sys.stderr.flush()
