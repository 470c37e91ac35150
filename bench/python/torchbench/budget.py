"""How long each kind of measurement takes, for a claim and for a look."""

from __future__ import annotations

from dataclasses import dataclass

from benchlib.effort import Effort


@dataclass(frozen=True, slots=True)
class Budget:
    """What all measurements may take."""

    latency: Effort
    averaging: Effort
    exposed: Effort
    training: Effort
    overhead: Effort
    starts: int
    """How often processes or jobs are started to time their start."""
    memory_jobs: int
    allocator_jobs: int


FULL = Budget(
    latency=Effort(seconds=8, block_seconds=0.02, min_rounds=20),
    averaging=Effort(seconds=22, block_seconds=0.2, min_rounds=5),
    exposed=Effort(seconds=28, block_seconds=0.4, min_rounds=5),
    training=Effort(seconds=22, block_seconds=0.4, min_rounds=9),
    overhead=Effort(seconds=5, block_seconds=0.05, min_rounds=9),
    starts=7,
    memory_jobs=3,
    allocator_jobs=3,
)
QUICK = Budget(
    latency=Effort(seconds=2, block_seconds=0.02, min_rounds=9),
    averaging=Effort(seconds=2, block_seconds=0.1, min_rounds=3),
    exposed=Effort(seconds=3, block_seconds=0.2, min_rounds=3),
    training=Effort(seconds=3.5, block_seconds=0.2, min_rounds=3),
    overhead=Effort(seconds=1, block_seconds=0.05, min_rounds=5),
    starts=3,
    memory_jobs=1,
    allocator_jobs=1,
)
