"""Turns the rounds of a contest into readings: who is ours, who a peer, what is subtracted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .contest import Round
from .readings import CaseReadings, Entrant, Role, Unit
from .readings import Round as Reading

Seconds = Mapping[str, float]

_PER_SECOND: Final[dict[Unit, float]] = {"us": 1e6, "ms": 1e3}
# A difference below this share of what it is taken from is noise, and must not make a ratio of 10^6.
_SMALLEST_SHARE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Column:
    """One entrant of a case, computed from the seconds that contestants took in a round."""

    name: str
    role: Role
    seconds: Callable[[Seconds], float]


def taken(role: Role, contestant: str, name: str | None = None) -> Column:
    """Show what a contestant took."""
    return Column(name or contestant, role, lambda seconds: seconds[contestant])


def added(role: Role, contestant: str, base: str, name: str | None = None, *, parts: int = 1) -> Column:
    """Show what a contestant took beyond another, for one of the equal parts of an operation."""
    return Column(
        name or contestant,
        role,
        lambda seconds: max(_SMALLEST_SHARE * seconds[base], seconds[contestant] - seconds[base]) / parts,
    )


def best_of(role: Role, contestants: Sequence[str], name: str) -> Column:
    """Show what the quickest of several took."""
    return Column(name, role, lambda seconds: min(seconds[one] for one in contestants))


def at_most(seconds: float) -> Column:
    """Show a figure to stay below."""
    return Column("figure", "limit", lambda _: seconds)


def make_case(
    name: str, unit: Unit, np: int, rounds: Sequence[Round], columns: Sequence[Column]
) -> CaseReadings:
    """Compute the readings of a case."""
    scale = _PER_SECOND[unit]
    return CaseReadings(
        name,
        unit,
        np,
        [Entrant(column.name, column.role) for column in columns],
        [
            Reading(
                [scale * column.seconds(one.seconds) for column in columns],
                one.before_ns,
                one.after_ns,
            )
            for one in rounds
        ],
    )
