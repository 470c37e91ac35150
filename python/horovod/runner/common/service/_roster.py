"""Who has come to the tf.data service: dispatchers with their addresses, workers, and whether it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any


class Roster:
    """What processes have registered, and waiting for it; any thread may use it."""

    def __init__(self, dispatchers: int, workers_per_dispatcher: int) -> None:
        """Expect so many of each."""
        self._workers_per_dispatcher = workers_per_dispatcher
        self._addresses: list[str | None] = [None] * dispatchers
        self._workers: list[set[int]] = [set() for _ in range(dispatchers)]
        self._is_over = False
        self._changed = threading.Condition()

    def register_dispatcher(self, dispatcher_id: int, address: str) -> None:
        """Remember where a dispatcher is; once."""
        with self._changed:
            known = self._addresses[self._checked(dispatcher_id)]
            if known is not None and known != address:
                message = (
                    f"Dispatcher with id {dispatcher_id} has already been registered under "
                    f"different address {known}: {address}"
                )
                raise ValueError(message)
            self._addresses[dispatcher_id] = address
            self._changed.notify_all()

    def register_worker(self, dispatcher_id: int, worker_id: int) -> None:
        """Remember that a worker of a dispatcher is ready."""
        with self._changed:
            self._workers[self._checked(dispatcher_id)].add(worker_id)
            self._changed.notify_all()

    def end(self) -> None:
        """Tell all that it is over."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def wait_for_dispatcher(self, dispatcher_id: int, seconds: float) -> str | None:
        """Return the address of a dispatcher, None if it has not come in time."""
        index = self._checked(dispatcher_id)
        self._wait(lambda: self._addresses[index] is not None, seconds)
        return self._addresses[index]

    def wait_for_workers(self, dispatcher_id: int, seconds: float) -> bool:
        """Return whether all workers of a dispatcher have come in time."""
        workers = self._workers[self._checked(dispatcher_id)]
        return self._wait(lambda: len(workers) >= self._workers_per_dispatcher, seconds)

    def wait_for_end(self, seconds: float) -> bool:
        """Return whether it was over in time."""
        return self._wait(lambda: self._is_over, seconds)

    def _wait(self, condition: Callable[[], Any], seconds: float) -> bool:
        end = time.monotonic() + seconds
        with self._changed:
            while not condition():
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def _checked(self, dispatcher_id: int) -> int:
        if not 0 <= dispatcher_id < len(self._addresses):
            message = f"dispatcher id must be between 0 and {len(self._addresses) - 1}, got {dispatcher_id}"
            raise IndexError(message)
        return dispatcher_id
