"""How much CPU others use: a round that shares its cores with strangers says little about us."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .world import World

DISTURBED_SHARE: Final = 0.12
"""Of all cores, from which on a round counts as disturbed."""

# The kernel counts in ticks of 4 to 10 ms: shorter rounds cannot be judged.
_SHORTEST_SECONDS: Final = 0.3

# Fields of the first line of /proc/stat. Interrupts are left out: Gloo's packets make them.
_COUNTED_FIELDS: Final = (1, 2, 3, 8)  # user, nice, system, steal


@dataclass(frozen=True, slots=True)
class _Reading:
    wall: float
    everybody: float
    ours: float


class Neighbours:
    """Watches the machine from one call of foreign_share to the next; collective."""

    def __init__(self, world: World) -> None:
        """Begin to watch."""
        self._world = world
        self._last = self._read()

    def foreign_share(self) -> float:
        """Return the share of all cores that other processes had since the last call."""
        now, last = self._read(), self._last
        self._last = now
        ours = self._world.total(now.ours - last.ours)
        wall = now.wall - last.wall
        if wall < _SHORTEST_SECONDS:
            share = 0.0
        else:
            cores = os.cpu_count() or 1
            share = (now.everybody - last.everybody - ours) / (wall * cores)
        return self._world.from_first(max(0.0, share))

    @staticmethod
    def _read() -> _Reading:
        with Path("/proc/stat").open(encoding="ascii") as file:
            fields = file.readline().split()
        ticks = sum(int(fields[index]) for index in _COUNTED_FIELDS)
        seconds = ticks / os.sysconf("SC_CLK_TCK")
        return _Reading(time.monotonic(), seconds, time.process_time())
