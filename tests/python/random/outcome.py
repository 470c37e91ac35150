"""How a run of a program ended."""

from __future__ import annotations

import re
from dataclasses import dataclass

from program import Program

_FOLLOWS = re.compile(
    "has ended without shutting down|has shut down|is shutting down|did not come to its end"
)
"""What ranks say whose peers have failed."""
_WRONG = "WrongResultError"


@dataclass(frozen=True)
class RankEnd:
    """How one rank ended."""

    problem: str | None
    """What it raised, or how it died; None: all is well."""
    at_seconds: float
    """When, on the clock of the machine."""
    place: int
    """The action it was at; one more than the last: it was through."""
    last_joined: tuple[int, ...]
    statistics: dict[str, int]
    """Of the core, if it came to the end."""
    output: str


@dataclass(frozen=True)
class Outcome:
    """How the ranks ended."""

    ends: tuple[RankEnd, ...]

    def failed(self) -> bool:
        """Whether anything was not as it should be."""
        return self.category() is not None

    def category(self) -> str | None:
        """What sort of failure it is, without numbers and names, to compare it with others."""
        first = self.first_problem()
        if first is not None:
            line = first.splitlines()[0]
            if line.startswith(_WRONG):
                return ":".join(line.split(":")[:2])
            return re.sub(r"'[^']*'|\[[^]]*\]|-?\d[\d.]*", "_", line)[:70]
        if len({end.last_joined for end in self.ends}) > 1:
            return "ranks disagree about who joined last"
        return None

    def first_problem(self) -> str | None:
        """What went wrong first; ranks that merely lost a peer come last."""
        failed = [end for end in self.ends if end.problem is not None]
        failed.sort(key=lambda end: (bool(_FOLLOWS.search(end.problem or "")), end.at_seconds))
        return failed[0].problem if failed else None

    def places(self) -> list[int]:
        """The action that each rank was at."""
        return [end.place for end in self.ends]


def describe(program: Program, outcome: Outcome, lines_per_rank: int = 40) -> str:
    """What every rank did last, and said."""
    lines = [f"failure: {outcome.category()}"]
    told: set[str] = set()
    for rank, end in enumerate(outcome.ends):
        problem = end.problem or "no problem of its own"
        if problem in told:
            problem = f"the same: {problem.splitlines()[0]}"
        told.add(problem)
        lines.append(f"rank {rank}, at action {end.place} of {len(program.actions[rank])}: {problem}")
        lines += [f"  | {line}" for line in end.output.splitlines()[-lines_per_rank:]]
    joined = [end.last_joined for end in outcome.ends]
    if len(set(joined)) > 1:
        lines.append(f"last joined, by rank: {joined}")
    return "\n".join(lines)
