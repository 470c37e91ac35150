"""Which rows of a Parquet data set belong to which rank. Pure: no files, no randomness of its own.

Rows are dealt out, not row groups: a small table has few groups, of uneven sizes, and a rank with
fewer rows than others would see some of its rows more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a file: what can be read by itself."""

    path: str
    index: int
    row_count: int


@dataclass(frozen=True, slots=True)
class RowSlice:
    """The rows [start, stop) of a row group."""

    group: RowGroup
    start: int
    stop: int

    @property
    def row_count(self) -> int:
        """How many rows these are."""
        return self.stop - self.start


def rows_of_rank(groups: Sequence[RowGroup], rank: int, size: int) -> list[RowSlice]:
    """Return the rows of one rank: neighbours in the order of `groups`, none twice, within one row of equal.

    With fewer rows than ranks each rank has one row, some the same: a rank without rows could not
    take part in a step.
    """
    if size < 1 or not 0 <= rank < size:
        message = f"rank {rank} of {size} ranks has no share: ranks count from 0 to size - 1"
        raise ValueError(message)
    total = sum(group.row_count for group in groups)
    if total == 0:
        return []
    if total < size:
        first = rank % total
        last = first + 1
    else:
        first, last = total * rank // size, total * (rank + 1) // size
    return _between(groups, first, last)


def _between(groups: Sequence[RowGroup], first: int, last: int) -> list[RowSlice]:
    slices = []
    begin = 0
    for group in groups:
        start = max(first - begin, 0)
        stop = min(last - begin, group.row_count)
        if start < stop:
            slices.append(RowSlice(group, start, stop))
        begin += group.row_count
    return slices


def steps_in_epoch(row_count: int, batch_size: int, size: int, *, round_up: bool) -> int:
    """Return how many steps every rank makes in an epoch; one at least, so that a small table trains.

    All ranks make the same number, whatever their rows: a step needs all of them.
    """
    rows_in_step = batch_size * size
    steps = -(-row_count // rows_in_step) if round_up else row_count // rows_in_step
    return max(steps, 1)
