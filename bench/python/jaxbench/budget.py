"""How long each kind of measurement takes, for a claim and for a look."""

from __future__ import annotations

from dataclasses import dataclass

from benchlib.effort import Effort


@dataclass(frozen=True, slots=True)
class Budget:
    """What all measurements may take."""

    calls: Effort
    averaging: Effort
    training: Effort
    imports: int


FULL = Budget(
    calls=Effort(seconds=10, block_seconds=0.1, min_rounds=20),
    averaging=Effort(seconds=40, block_seconds=0.5, min_rounds=7),
    training=Effort(seconds=40, block_seconds=0.4, min_rounds=9),
    imports=9,
)
QUICK = Budget(
    calls=Effort(seconds=2, block_seconds=0.05, min_rounds=9),
    averaging=Effort(seconds=8, block_seconds=0.3, min_rounds=3),
    training=Effort(seconds=6, block_seconds=0.2, min_rounds=5),
    imports=3,
)
