"""Where the workers of an elastic job call the driver, and are told what was decided.

Threads of its own take calls and read lines; each message becomes an item of the driver's queue.
"""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from horovod.runner.common.service._reception import Guest, Reception

from .line import Kind, Line, LineLostError, take_call

_GREETING_SECONDS = 10.0  # for the greeting and HELLO together, however slowly they come
_MOST_CALLS = 4096


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of a worker, or, with `kind` None, the end of its line and why."""

    caller: str
    kind: Kind | None
    body: bytes


class Exchange:
    """Takes calls from its construction until close(); `send` is for the driver's thread."""

    def __init__(
        self, key: bytes, nics: Collection[str], heard: queue.Queue[Any], silence_seconds: float | None = None
    ) -> None:
        """Listen on the interfaces, or on all of them. Callers that are silent for so long are lost."""
        self._heard = heard
        self._silence_seconds = silence_seconds
        self._lines: dict[str, Line] = {}
        self._is_closed = False
        self._lock = threading.Lock()  # guards the two above
        self._reception = Reception("elastic driver", key, nics, _MOST_CALLS, _GREETING_SECONDS)
        self._reception.open(self._serve)

    def addresses(self) -> dict[str, list[tuple[str, int]]]:
        """Return where it listens, by interface."""
        return self._reception.addresses()

    def send(self, caller: str, kind: Kind, body: bytes = b"") -> bool:
        """Tell a worker; False if it is not there any more, which the queue says too."""
        with self._lock:
            line = self._lines.get(caller)
        if line is None:
            return False
        try:
            line.send(kind, body)
        except LineLostError:
            return False
        return True

    def hang_up(self, caller: str) -> None:
        """End the line of a worker, if there is one."""
        with self._lock:
            line = self._lines.get(caller)
        if line is not None:
            line.close()

    def close(self) -> None:
        """End all lines."""
        with self._lock:
            self._is_closed = True
            lines = list(self._lines.values())
        for line in lines:
            line.close()
        self._reception.close()

    def _serve(self, guest: Guest) -> None:
        line, hello = take_call(guest)
        caller = _caller_of(hello)
        with self._lock:
            is_welcome = bool(caller) and caller not in self._lines and not self._is_closed
            if is_welcome:
                self._lines[caller] = line
        if not is_welcome:
            message = f"a caller {caller!r} is here already, or has not said who it is"
            raise ValueError(message)
        guest.stay()
        reason = "the connection has ended"
        kind, body = Kind.HELLO, hello
        try:
            while True:
                self._heard.put(Heard(caller, kind, body))
                kind, body = line.receive(self._silence_seconds)
        except (LineLostError, ValueError) as error:
            reason = str(error)
        finally:
            with self._lock:
                del self._lines[caller]
            self._heard.put(Heard(caller, None, reason.encode()))


def _caller_of(hello: bytes) -> str:
    said = json.loads(hello)
    return str(said.get("caller", "")) if isinstance(said, dict) else ""
