"""How long to measure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure one case."""

    seconds: float
    block_seconds: float
    min_rounds: int
