"""Rounds in which all contestants run, a block each, in random order: as bench/contest.h has it.

    probe · a block of contestant A · a block of B · … · probe

A block starts behind a barrier and counts the slowest rank.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .effort import Effort
from .neighbours import DISTURBED_SHARE, Neighbours
from .placement import NEAR_LIMIT_NS, Placement
from .world import World

_log = logging.getLogger("bench")

# Slower than this, an untimed first operation costs more than the cold caches it avoids.
_WARM_UP_LIMIT_SECONDS: Final = 0.3
_MAX_OPERATIONS: Final = 1 << 16
# Looking for near and undisturbed rounds may prolong a case this much.
_PATIENCE: Final = 1.3


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Contestant:
    """Somebody who does the same work as the others in another way."""

    name: str
    run: Callable[[int], None]
    """Makes so many operations; collective."""
    rest: Callable[[], None] = _nothing
    """Gives back what it needs only while it runs; called after each block."""


@dataclass(frozen=True, slots=True)
class _Block:
    operations: int
    is_warmed_up: bool


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds per operation of every contestant, and the circumstances."""

    seconds: Mapping[str, float]
    before_ns: float
    after_ns: float
    foreign_share: float

    @property
    def is_disturbed(self) -> bool:
        """Whether others had too much of the machine."""
        return self.foreign_share > DISTURBED_SHARE

    @property
    def is_good(self) -> bool:
        """Whether the round can decide about a goal."""
        return not self.is_disturbed and max(self.before_ns, self.after_ns) < NEAR_LIMIT_NS


class Contest:
    """Measures cases one after the other; collective."""

    def __init__(self, world: World) -> None:
        """Set up the probe."""
        self._world = world
        self._placement = Placement(world)
        self._neighbours = Neighbours(world)

    def measure(self, name: str, contestants: Sequence[Contestant], effort: Effort) -> Sequence[Round]:
        """Return the rounds of one case; without disturbed ones where enough others remain."""
        blocks = {one.name: self._calibrate(one, effort) for one in contestants}
        rounds: list[Round] = []
        start = time.monotonic()
        go_on = True
        while go_on:
            rounds.append(self._round(contestants, blocks, seed=len(rounds)))
            seconds = time.monotonic() - start
            enough = len(rounds) >= effort.min_rounds and seconds > effort.seconds
            satisfied = sum(one.is_good for one in rounds) >= effort.min_rounds
            done = enough and (satisfied or seconds > _PATIENCE * effort.seconds)
            go_on = self._world.from_first(0.0 if done else 1.0) > 0  # only rank 0's clock counts
        return self._without_disturbed(name, rounds, effort)

    def _calibrate(self, contestant: Contestant, effort: Effort) -> _Block:
        operations = 1
        while True:
            seconds = self._time_block(contestant, operations)
            if seconds * operations > effort.block_seconds / 3 or operations >= _MAX_OPERATIONS:
                break
            operations *= 4
        contestant.rest()
        wanted = min(_MAX_OPERATIONS, max(1, round(effort.block_seconds / seconds)))
        return _Block(wanted, is_warmed_up=seconds < _WARM_UP_LIMIT_SECONDS)

    def _round(self, contestants: Sequence[Contestant], blocks: Mapping[str, _Block], seed: int) -> Round:
        before_ns = self._placement.round_trip_ns()
        self._neighbours.foreign_share()
        seconds: dict[str, float] = {}
        # The same order on all ranks, another one in each round.
        for contestant in random.Random(seed).sample(contestants, len(contestants)):  # noqa: S311
            block = blocks[contestant.name]
            if block.is_warmed_up:
                contestant.run(1)
            seconds[contestant.name] = self._time_block(contestant, block.operations)
            contestant.rest()
        foreign_share = self._neighbours.foreign_share()
        return Round(seconds, before_ns, self._placement.round_trip_ns(), foreign_share)

    def _time_block(self, contestant: Contestant, operations: int) -> float:
        self._world.barrier()
        start = time.perf_counter()
        contestant.run(operations)
        return self._world.largest(time.perf_counter() - start) / operations

    def _without_disturbed(self, name: str, rounds: Sequence[Round], effort: Effort) -> Sequence[Round]:
        undisturbed = [one for one in rounds if not one.is_disturbed]
        if self._world.is_first and len(undisturbed) < len(rounds):
            _log.warning(
                "%s: other processes disturbed %d of %d rounds",
                name, len(rounds) - len(undisturbed), len(rounds),
            )  # fmt: skip
        return undisturbed if len(undisturbed) >= effort.min_rounds else rounds
