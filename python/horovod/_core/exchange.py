"""Stores that the ranks of a job share before it starts, for jobs that horovodrun did not start.

Ranks on several hosts leave their addresses there, and agree on a key. A front end whose framework knows
such a store registers a function that finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Exchange(Protocol):
    """A key-value store of the job. What it raises ends the init.

    One that can forget a value has `remove(key: str, /) -> None` too; what that raises counts for nothing.
    """

    def set(self, key: str, value: bytes, /) -> None:
        """Leave a value for the other ranks."""

    def get(self, key: str, seconds: float, /) -> bytes | None:
        """Wait for a value of another rank; None: it did not come in time."""


Finder = Callable[[], "Exchange | None"]

_finders: list[Finder] = []


def register_finder(finder: Finder) -> None:
    """Ask `finder` at every init from now on."""
    if finder not in _finders:
        _finders.append(finder)


def find_exchange() -> Exchange | None:
    """The first store that somebody finds."""
    for finder in _finders:
        found = finder()
        if found is not None:
            return found
    return None
