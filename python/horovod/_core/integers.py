"""Small collectives on Python integers, for what front ends must know before the real operation."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from . import _native
from .codes import ALLGATHER, BROADCAST, INT64
from .process_sets import ProcessSet, registered_id


def _run(
    kind: int, name: str | None, process_set: int, data: array[int], output: array[int], root: int
) -> None:
    _native.run(
        kind=kind,
        dtype=INT64,
        process_set=process_set,
        root_rank=root,
        shape=(len(data),),
        input=data.buffer_info()[0],
        output=output.buffer_info()[0],
        name=name,
        owner=(data, output),
    )


def allgather_integers(
    values: Sequence[int], process_set: ProcessSet, name: str | None = None
) -> list[list[int]]:
    """Return what every rank of the set gave, in rank order; all give equally many."""
    data = array("q", values)
    ranks = process_set.size() or 0
    gathered = array("q", [0]) * (ranks * len(data))
    _run(ALLGATHER, name, registered_id(process_set), data, gathered, 0)
    count = len(data)
    return [list(gathered[rank * count : (rank + 1) * count]) for rank in range(ranks)]


def broadcast_integer(value: int, root_rank: int, process_set: ProcessSet, name: str | None = None) -> int:
    """Return the number of the root, a global rank."""
    data = array("q", [value])
    _run(BROADCAST, name, registered_id(process_set), data, data, root_rank)
    return data[0]
