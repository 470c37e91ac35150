"""Waits for the calls of all ranks, and finds out who failed first if one does.

A rank that raises ends its part of the job, so peers that wait for it in a collective fail a moment later
with HorovodInternalError. They get a short time for it; then the cause is raised.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayActorError

from horovod.common.exceptions import HorovodInternalError

_logger = logging.getLogger("horovod.ray")
_GRACE_SECONDS = 5.0


@dataclass
class Outcome:
    """What came of a call on every rank."""

    results: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, Exception] = field(default_factory=dict)
    unfinished: list[int] = field(default_factory=list)

    @property
    def workers_are_usable(self) -> bool:
        """Whether every worker is alive and has nothing left to do."""
        died = any(isinstance(error, RayActorError) for error in self.failures.values())
        return not died and not self.unfinished

    def cause(self) -> tuple[int, Exception] | None:
        """The rank that failed first, and its error: a death before an exception before a consequence."""
        ordered = sorted(self.failures.items(), key=lambda item: _weight(item[1]))
        return ordered[0] if ordered else None


def _weight(error: Exception) -> int:
    if isinstance(error, RayActorError):
        return 0
    return 2 if isinstance(error, HorovodInternalError) else 1


def collect(references: Sequence[Any], grace_seconds: float = _GRACE_SECONDS) -> Outcome:
    """Wait for all; after a failure, for the grace at most. Never raises what a rank raised."""
    outcome = Outcome()
    pending = {reference: rank for rank, reference in enumerate(references)}
    deadline: float | None = None
    while pending:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            break
        ready, _ = ray.wait(list(pending), num_returns=1, timeout=left)
        for reference in ready:
            rank = pending.pop(reference)
            try:
                outcome.results[rank] = ray.get(reference)
            except Exception as error:  # noqa: BLE001 - of the user, or of Ray
                outcome.failures[rank] = error
        if outcome.failures and deadline is None:
            deadline = time.monotonic() + grace_seconds
    outcome.unfinished = sorted(pending.values())
    return outcome


def raise_cause(what: str, outcome: Outcome) -> None:
    """Raise the error of the rank that failed first; it carries the traceback of the worker."""
    found = outcome.cause()
    if found is None:
        return
    rank, error = found
    note = f"{what}: rank {rank} failed first"
    _logger.error("%s: %s", note, type(error).__name__)
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(note)
    raise error
