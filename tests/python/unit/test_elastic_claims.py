"""Whose state is taken after a reset."""

from __future__ import annotations

import itertools
import random

import pytest

from horovod._core.elastic.claims import Agreement, Claim, agree

NEW = Claim()


def survivor(generation: int, commit: int, wants_sync: bool = True) -> Claim:
    return Claim(has_state=True, generation=generation, commit=commit, wants_sync=wants_sync)


@pytest.mark.parametrize(
    ("claims", "root"),
    [
        ([NEW], 0),
        ([NEW, NEW, NEW], 0),
        ([survivor(1, 5), survivor(1, 5)], 0),
        ([survivor(1, 5), survivor(1, 6)], 1),
        ([survivor(1, 6), survivor(1, 5)], 0),
        ([NEW, survivor(1, 0)], 1),
        # A later generation has gone on without the other, whatever that had committed.
        ([survivor(1, 9), survivor(2, 3)], 1),
        # A newcomer has counted its own commits before it met anybody.
        ([Claim(has_state=False, generation=0, commit=7), survivor(1, 2)], 1),
    ],
)
def test_the_newest_commit_wins_and_the_lowest_rank_among_equals(claims, root):
    assert agree(claims).root == root


def test_nothing_needs_to_move_where_all_have_the_same_commit_and_nobody_asks():
    assert not agree([survivor(1, 5, wants_sync=False)] * 3).is_needed
    assert agree([survivor(1, 5, wants_sync=False), survivor(1, 5)]).is_needed
    assert agree([survivor(1, 5, wants_sync=False), NEW]).is_needed
    assert agree([survivor(1, 5, wants_sync=False), survivor(1, 6, wants_sync=False)]).is_needed


def test_what_all_have_afterwards():
    agreed = agree([survivor(3, 5), survivor(3, 6), NEW])

    assert agreed == Agreement(root=1, generation=4, commit=6, is_needed=True, commit_name=(3, 6))
    assert agree([NEW, NEW]).commit_name is None


def test_claims_survive_their_journey():
    for numbers in itertools.product([False, True], [0, 3], [0, 1 << 40], [False, True]):
        claim = Claim(*numbers)

        assert Claim.of(claim.numbers()) == claim


def test_a_newcomer_is_never_taken_while_somebody_has_a_state():
    source = random.Random(7)
    for _ in range(1000):
        claims = [
            Claim(source.random() < 0.5, source.randrange(3), source.randrange(5), source.random() < 0.5)
            for _ in range(source.randrange(1, 6))
        ]

        agreed = agree(claims)

        taken = claims[agreed.root]
        assert taken.has_state or not any(claim.has_state for claim in claims)
        for claim in claims:
            assert not claim.has_state or (claim.generation, claim.commit) <= (taken.generation, taken.commit)
            assert claim.generation < agreed.generation
