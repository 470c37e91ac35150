"""Which rows belong to which rank."""

from __future__ import annotations

import pytest

from horovod.spark.common._balance import RowGroup, rows_of_rank, steps_in_epoch


def _groups(*counts):
    return [RowGroup(f"part-{index}", index, count) for index, count in enumerate(counts)]


def _rows(slices):
    return [(part.group.path, row) for part in slices for row in range(part.start, part.stop)]


@pytest.mark.parametrize("counts", [(10,), (1, 1, 1), (668, 332), (5, 0, 7, 1), (3, 100, 2)])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_row_belongs_to_one_rank_and_shares_differ_by_one_row(counts, size):
    shares = [_rows(rows_of_rank(_groups(*counts), rank, size)) for rank in range(size)]

    if sum(counts) >= size:
        every = [row for share in shares for row in share]
        assert sorted(every) == sorted(_rows(rows_of_rank(_groups(*counts), 0, 1)))
        assert len(every) == len(set(every))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1


def test_ranks_share_rows_when_there_are_fewer_rows_than_ranks():
    shares = [_rows(rows_of_rank(_groups(2), rank, 5)) for rank in range(5)]

    assert [len(share) for share in shares] == [1] * 5
    assert {row for share in shares for row in share} == {("part-0", 0), ("part-0", 1)}


def test_no_rows_give_no_slices():
    assert rows_of_rank([], 0, 2) == []


@pytest.mark.parametrize(("rank", "size"), [(2, 2), (-1, 2), (0, 0)])
def test_a_rank_that_does_not_exist_is_an_error(rank, size):
    with pytest.raises(ValueError, match=f"rank {rank} of {size} ranks"):
        rows_of_rank(_groups(10), rank, size)


@pytest.mark.parametrize(
    ("rows", "batch", "size", "round_up", "steps"),
    [
        (100, 10, 2, False, 5),
        (109, 10, 2, False, 5),
        (101, 10, 2, True, 6),
        (3, 32, 2, False, 1),
        (3, 32, 2, True, 1),
    ],
)
def test_steps_of_an_epoch_are_the_same_for_all_ranks_and_one_at_least(rows, batch, size, round_up, steps):
    assert steps_in_epoch(rows, batch, size, round_up=round_up) == steps
