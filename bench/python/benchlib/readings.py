"""What a measurement leaves behind: values round by round, in the format of bench/report/readings.h.

Measuring knows nothing of ratios or goals: hvd_bench_report alone makes rows of readings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

Role = Literal["ours", "peer", "limit"]
Unit = Literal["us", "ms", "MiB"]

NO_PLACEMENT: Final = 0.0
"""The round trip of a round for which it does not matter where the cores are."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """Who competes; what is smaller is better, for all of them."""

    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Round:
    """One value per entrant, taken within moments of each other; NaN: sat the round out."""

    values: Sequence[float]
    before_ns: float = NO_PLACEMENT
    after_ns: float = NO_PLACEMENT


@dataclass(frozen=True, slots=True)
class CaseReadings:
    """All rounds of one case; a name "np=2 exposed: BERT" is drawn as a bar of "np=2 exposed"."""

    name: str
    unit: Unit
    np: int
    entrants: Sequence[Entrant]
    rounds: Sequence[Round] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """As hvd_bench_report reads it."""
        return {
            "case": self.name,
            "metric": "mean",
            "unit": self.unit,
            "np": self.np,
            "bytes": 0,
            "entrants": [{"name": entrant.name, "role": entrant.role} for entrant in self.entrants],
            "rounds": [_round_json(one) for one in self.rounds],
        }


def _round_json(one: Round) -> dict[str, object]:
    # JSON has no NaN: null is its way to say "no value".
    values = [value if math.isfinite(value) else None for value in one.values]
    return {"rtt_ns": [one.before_ns, one.after_ns], "values": values}


def save(path: Path, bench: str, source: str, cases: Sequence[CaseReadings]) -> None:
    """Write the readings of one program; the bench is that of a goal."""
    text = json.dumps({"bench": bench, "source": source, "cases": [case.to_json() for case in cases]})
    path.write_text(text + "\n", encoding="utf-8")
