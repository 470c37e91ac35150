"""Whose state is taken after a reset: every rank says what it has, and all draw the same conclusion.

Nobody has to believe anything about the others: a newcomer and a survivor run the same collective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from horovod._core.integers import allgather_integers
from horovod._core.process_sets import global_process_set


@dataclass(frozen=True)
class Claim:
    """What one rank says about its state."""

    has_state: bool = False
    """False: a newcomer, or one that lost a peer before its first sync was complete."""
    generation: int = 0
    """How many times ranks have met to share a state before this commit."""
    commit: int = 0
    """Commits since the job began; survivors of one generation may differ by one."""
    wants_sync: bool = True
    """False: whoever stays has the state already."""

    def numbers(self) -> list[int]:
        """As they travel."""
        return [int(self.has_state), self.generation, self.commit, int(self.wants_sync)]

    @staticmethod
    def of(numbers: Sequence[int]) -> Claim:
        """The opposite of numbers()."""
        has_state, generation, commit, wants_sync = numbers
        return Claim(bool(has_state), generation, commit, bool(wants_sync))


@dataclass(frozen=True)
class Agreement:
    """What follows from the claims of all ranks."""

    root: int
    generation: int
    """Of the state that all have afterwards."""
    commit: int
    is_needed: bool
    """Some rank lacks the newest state, or asks for it."""
    commit_name: tuple[int, int] | None = None
    """Generation and number of the commit that is taken; None: nobody has one."""


def agree(claims: Sequence[Claim]) -> Agreement:
    """The newest commit wins, the lowest rank among equals; a newcomer only if all are newcomers."""

    def age(rank: int) -> tuple[bool, int, int, int]:
        claim = claims[rank]
        return claim.has_state, claim.generation, claim.commit, -rank

    root = max(range(len(claims)), key=age)
    newest = claims[root]
    is_needed = any(
        claim.wants_sync
        or not claim.has_state
        or (claim.generation, claim.commit) != (newest.generation, newest.commit)
        for claim in claims
    )
    return Agreement(
        root=root,
        generation=max(claim.generation for claim in claims) + 1,
        commit=newest.commit,
        is_needed=is_needed,
        commit_name=(newest.generation, newest.commit) if newest.has_state else None,
    )


def exchange(claim: Claim) -> Agreement:
    """Agree with all ranks; a collective, and the first of every sync."""
    gathered = allgather_integers(claim.numbers(), global_process_set, "elastic.claims")
    return agree([Claim.of(numbers) for numbers in gathered])
