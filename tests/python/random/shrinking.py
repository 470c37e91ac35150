"""Finds a small program that fails like a large one: cuts something away, runs it, keeps what still fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import cuts
from legality import problems
from program import Program

Fails = Callable[[Program], bool]
IsOver = Callable[[], bool]


def shrink(program: Program, places: Sequence[int], fails: Fails, is_over: IsOver) -> Program:
    """The smallest program found that still fails, until nothing helps any more or the time is over.

    `places` are the actions that the ranks were at when it failed.
    """
    search = _Search(program, fails, is_over)
    search.drop_what_did_not_begin(places)
    before = None
    while before != search.best and not is_over():
        before = search.best
        search.drop_operations()
        search.drop_ranks()
        search.drop_disturbances()
        search.simplify_operations()
        search.simplify_ranks()
        search.drop_settings()
    return search.best


class _Search:
    def __init__(self, program: Program, fails: Fails, is_over: IsOver) -> None:
        self.best = program
        self._fails = fails
        self._is_over = is_over

    def _try(self, candidate: Program) -> bool:
        if candidate == self.best or self._is_over() or problems(candidate) or not self._fails(candidate):
            return False
        self.best = candidate
        return True

    def drop_what_did_not_begin(self, places: Sequence[int]) -> None:
        """In one go."""
        self._try(cuts.until(self.best, places))

    def drop_disturbances(self) -> None:
        """Pauses and polls: all at once, by rank, in parts."""
        quiet = self.best
        for rank in range(quiet.size):
            quiet = cuts.without_actions(quiet, rank, _optional_places(quiet, rank))
        if self._try(quiet):
            return
        for rank in range(self.best.size):
            self._drop_disturbances_of(rank)

    def _drop_disturbances_of(self, rank: int) -> None:
        places = _optional_places(self.best, rank)
        self._in_parts(places, lambda part: cuts.without_actions(self.best, rank, part))

    def drop_operations(self) -> None:
        """In halves, quarters and so on."""
        numbers = range(len(self.best.operations))
        self._in_parts(numbers, lambda part: cuts.without_operations(self.best, part))
        self._try(cuts.without_unused_sets(self.best))

    def drop_ranks(self) -> None:
        """The last first."""
        for rank in reversed(range(self.best.size)):
            if self.best.size > 2:
                self._try(cuts.without_rank(self.best, rank))

    def simplify_operations(self) -> None:
        """All at once, then in halves and so on."""
        for simplify in cuts.SIMPLIFICATIONS:
            numbers = range(len(self.best.operations))
            for part in _parts(numbers):
                self._try(cuts.with_simpler(self.best, simplify, part))

    def simplify_ranks(self) -> None:
        """Forms, then the order."""
        for rank in range(self.best.size):
            self._try(cuts.with_plain_forms(self.best, rank))
            plain = [cuts.in_plain_order(self.best, rank, waits) for waits in (1.0, 0.0)]
            if self.best not in plain:
                any(self._try(candidate) for candidate in plain)

    def drop_settings(self) -> None:
        """One host, then one setting after the other."""
        self._try(dataclasses.replace(self.best, hosts=(self.best.size,)))
        for setting in self.best.settings:
            kept = tuple(entry for entry in self.best.settings if entry != setting)
            self._try(dataclasses.replace(self.best, settings=kept))

    def _in_parts(self, items: Sequence[int], cut: Callable[[Sequence[int]], Program]) -> None:
        """Drop parts of the items, which are places: those behind a part that went move up."""
        items = list(items)
        size = (len(items) + 1) // 2
        while size >= 1 and items:
            start = 0
            while start < len(items):
                part = items[start : start + size]
                before = self.best
                if self._try(cut(part)):
                    items = _moved_up(items, part, before, self.best)
                else:
                    start += size
            size //= 2


def _moved_up(items: list[int], gone: Sequence[int], before: Program, after: Program) -> list[int]:
    if len(before.operations) != len(after.operations):
        # More than the part may have gone with it.
        return [item for item in items if item < len(after.operations)]
    lost = set(gone)
    return [item - sum(1 for place in gone if place < item) for item in items if item not in lost]


def _optional_places(program: Program, rank: int) -> list[int]:
    return [place for place, action in enumerate(program.actions[rank]) if cuts.is_optional(action)]


def _parts(items: Sequence[int]) -> Iterator[Sequence[int]]:
    """All items, the halves, the quarters, down to single ones."""
    size = len(items)
    while size >= 1:
        for start in range(0, len(items), size):
            yield items[start : start + size]
        size //= 2
