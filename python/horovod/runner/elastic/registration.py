"""What the workers of one world have reported, and what follows when all of them have."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from typing import TYPE_CHECKING

from . import constants

if TYPE_CHECKING:
    from .discovery import HostManager
    from .driver import ElasticDriver

READY = "READY"
SUCCESS = "SUCCESS"
FAILURE = "FAILURE"

_logger = logging.getLogger("horovod")

_Slot = tuple[str, int]


class WorkerStateRegistry:
    """Collects a state for every slot of the world; the last one to report decides for all.

    A worker that is ready waits in its call until the decision has been carried out.
    """

    def __init__(
        self,
        driver: ElasticDriver,
        host_manager: HostManager,
        reset_limit: int | None = None,
        verbose: bool = False,
    ) -> None:
        """Begin without workers; reset() says how many there are."""
        del verbose
        self._driver = driver
        self._host_manager = host_manager
        self._reset_limit = reset_limit
        self._reset_count = 0
        self._changed = threading.Condition()
        self._states: dict[_Slot, str] = {}
        self._workers: defaultdict[str, set[_Slot]] = defaultdict(set)
        self._rendezvous_id = 0
        self._is_decided = False
        self._size = 0

    def get_recorded_slots(self) -> list[_Slot]:
        """Return the slots that have reported."""
        return list(self._states)

    def get(self, state: str) -> set[_Slot]:
        """Return the slots that have reported this state."""
        return set(self._workers[state])

    def count(self, state: str) -> int:
        """Return how many slots have reported this state."""
        return len(self._workers[state])

    def size(self) -> int:
        """Return how many slots there are."""
        return self._size

    def last_rendezvous(self) -> int:
        """Return the number of the world that reports are collected for."""
        return self._rendezvous_id

    def reset(self, size: int) -> None:
        """Begin a world of so many slots; whoever waits for it goes on."""
        with self._changed:
            self._states.clear()
            self._workers.clear()
            self._rendezvous_id += 1
            self._is_decided = False
            self._size = size
            self._changed.notify_all()

    def record_ready(self, host: str, slot: int) -> int:
        """A worker waits for the next world; returns its number when it has begun."""
        return self._record(host, slot, READY)

    def record_success(self, host: str, slot: int) -> int:
        """A worker has ended well."""
        return self._record(host, slot, SUCCESS)

    def record_failure(self, host: str, slot: int) -> int:
        """A worker has ended badly, perhaps after it had been ready."""
        return self._record(host, slot, FAILURE)

    def _record(self, host: str, slot: int, state: str) -> int:
        if self._driver.finished() or self._host_manager.is_blacklisted(host):
            return self._rendezvous_id
        key = (host, slot)
        with self._changed:
            known = self._states.get(key)
            if known is not None and (known == state or state != FAILURE):
                _logger.warning("%s[%d] is %s already, %s is ignored", host, slot, known, state)
            else:
                if known is not None:
                    self._workers[known].discard(key)
                self._states[key] = state
                self._workers[state].add(key)
            mine = self._rendezvous_id
            decides = len(self._states) == self._size and not self._is_decided
            self._is_decided = self._is_decided or decides
            self._changed.notify_all()
        if decides:
            self._decide()
            with self._changed:
                self._changed.notify_all()
            return mine
        return self._wait(key, state, mine)

    def _wait(self, key: _Slot, state: str, mine: int) -> int:
        """Wait for the decision; RuntimeError if this slot has failed meanwhile."""
        with self._changed:
            while self._rendezvous_id == mine and not self._driver.finished():
                if self._states.get(key) != state:
                    message = f"{key[0]}[{key[1]}] was {state}, but is {self._states.get(key)} now"
                    raise RuntimeError(message)
                self._changed.wait(_LOOK_SECONDS)
            return mine

    def _decide(self) -> None:
        if self.count(SUCCESS) > 0:
            _logger.info("success count == %d -> stop running", self.count(SUCCESS))
            self._driver.stop()
            return
        if self.count(FAILURE) == self._size:
            _logger.error("failure count == %d -> stop running", self._size)
            self._driver.stop()
            return
        for host, _ in self.get(FAILURE):
            self._host_manager.blacklist(host)
        if all(self._host_manager.is_blacklisted(host) for host, _ in self.get_recorded_slots()):
            _logger.error("blacklisted slots count == %d -> stop running", self._size)
            self._driver.stop()
            return
        if self._reset_limit is not None and self._reset_count >= self._reset_limit:
            message = constants.RESET_LIMIT_EXCEEDED_MESSAGE.format(self._reset_limit)
            _logger.error("%s", message)
            self._driver.stop(error_message=message)
            return
        try:
            self._reset_count += 1
            self._driver.resume()
        except Exception:
            _logger.exception("failed to activate new hosts -> stop running")
            self._driver.stop()


_LOOK_SECONDS = 0.1
"""The driver may be stopped by others, who do not tell."""
