"""How long each kind of measurement takes, for a claim and for a look."""

from __future__ import annotations

from dataclasses import dataclass

from benchlib.effort import Effort


@dataclass(frozen=True, slots=True)
class Budget:
    """What all measurements may take."""

    push: Effort
    training: Effort
    kvstore: Effort
    imports: int


FULL = Budget(
    push=Effort(seconds=10, block_seconds=0.1, min_rounds=20),
    training=Effort(seconds=30, block_seconds=0.4, min_rounds=9),
    kvstore=Effort(seconds=30, block_seconds=0.4, min_rounds=9),
    imports=7,
)
QUICK = Budget(
    push=Effort(seconds=2, block_seconds=0.05, min_rounds=9),
    training=Effort(seconds=5, block_seconds=0.2, min_rounds=5),
    kvstore=Effort(seconds=5, block_seconds=0.2, min_rounds=5),
    imports=3,
)
