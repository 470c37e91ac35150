"""How the workers of an elastic job have ended."""

from __future__ import annotations

import queue
import threading
from typing import NamedTuple


class Results(NamedTuple):
    """The outcome of a job."""

    error_message: str | None
    worker_results: dict[str, tuple[int, float]]
    """Exit code and time of the end, by "host[local rank]"."""


class ResultsRecorder:
    """Waits for the threads that run workers, and keeps what they have to say."""

    def __init__(self) -> None:
        """Expect nobody yet."""
        self._error_message: str | None = None
        self._worker_results: dict[str, tuple[int, float]] = {}
        self._worker_threads: queue.Queue[threading.Thread] = queue.Queue()

    def expect(self, worker_thread: threading.Thread) -> None:
        """Wait for this thread too."""
        self._worker_threads.put(worker_thread)

    def set_error_message(self, error_message: str | None) -> None:
        """Keep why the job was stopped."""
        self._error_message = error_message

    def add_result(self, key: str, value: tuple[int, float]) -> None:
        """Keep how a worker ended; the first report of a slot counts."""
        self._worker_results.setdefault(key, value)

    def get_results(self) -> Results:
        """Wait for all workers."""
        while not self._worker_threads.empty():
            self._worker_threads.get().join()
        return Results(self._error_message, dict(self._worker_results))
