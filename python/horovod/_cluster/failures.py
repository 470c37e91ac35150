"""Failures of ranks as values, and which of several is the cause of the others. Pure but for the clock.

When a rank fails, its peers fail too: with HorovodInternalError, a moment later. The user wants to see
the first one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Any

from horovod._core import _native
from horovod.common.exceptions import HorovodInternalError
from horovod.runner._shipment import Failure

__all__ = ["Failure", "RankError", "call_as_rank", "failure_of", "first_cause", "raise_first"]

# What a rank gets because of another one, by the name that a traceback ends in. Its public module must be
# imported in the worker: an error that is pickled before arrives as another class of the same name.
_CONSEQUENCE = HorovodInternalError.__name__


class RankError(RuntimeError):
    """A rank of a job on a cluster failed; the text holds the rank's traceback."""

    def __init__(self, message: str, rank: int | None = None) -> None:
        """Keep the rank for programs that look for it; None: it is not known."""
        super().__init__(message)
        self.rank = rank


def failure_of(error: BaseException, rank: int) -> Failure:
    """Describe an exception of this process, which was just caught."""
    return Failure.of(error, rank, socket.gethostname())


def is_consequence(failure: Failure) -> bool:
    """Whether the failure only says that another rank has failed."""
    summary = failure.summary.rsplit("\n", 1)[-1]
    return _CONSEQUENCE in summary.split(":", 1)[0]


def first_cause(failures: Sequence[Failure]) -> Failure | None:
    """The failure that made the others: the earliest that is not itself a consequence."""
    ordered = sorted(failures, key=lambda failure: (is_consequence(failure), failure.when, failure.rank))
    return ordered[0] if ordered else None


def raise_first(failures: Sequence[Failure], what: str) -> None:
    """Raise the cause as a RankError with the traceback of its rank; nothing without failures."""
    first = first_cause(failures)
    if first is None:
        return
    message = f"{what}: rank {first.rank} on host {first.host} raised {first.summary}\n\n{first.traceback}"
    raise RankError(message, first.rank) from first.exception()


def call_as_rank(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of the user; if it raises, end the job so that no peer waits for this rank."""
    try:
        return function(*args, **kwargs)
    except BaseException:
        # Also after the error of a peer: then all ranks can meet again in the next hvd.init().
        if _native.is_initialized():
            _native.shutdown()
        raise


def current_rank() -> int:
    """The rank that `enter` gave this process; 0 before."""
    return int(os.environ.get("HOROVOD_RANK", "0"))
