"""Communicators of mpi4py, which is not imported here: only a program that has it can pass one."""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any

from .errors import HorovodInternalError

# Messages that nobody waits for any more, and the memory that MPI may still use for them.
_kept: list[object] = []


def is_communicator(value: object) -> bool:
    """Return whether this is a communicator of mpi4py."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and isinstance(value, mpi.Comm)


def comm_address(comm: object) -> int:
    """Return where mpi4py keeps the MPI_Comm. It moves no more while the object lives."""
    address: int = sys.modules["mpi4py.MPI"]._addressof(comm)  # noqa: SLF001 - made for this
    return address


def ranks_within(comm: Any, job: Any) -> list[int]:
    """Return the ranks in `job` of the processes of `comm`, sorted; a negative one is not there."""
    mpi = sys.modules["mpi4py.MPI"]
    if comm == mpi.COMM_NULL:
        return []
    group, job_group = comm.Get_group(), job.Get_group()
    ranks = mpi.Group.Translate_ranks(group, list(range(group.Get_size())), job_group)
    group.Free()
    job_group.Free()
    return sorted(-1 if rank == mpi.UNDEFINED else rank for rank in ranks)


def _await(request: Any, buffers: object, deadline: float) -> None:
    while not request.Test():
        if time.monotonic() > deadline:
            _kept.append((request, buffers))
            message = (
                "init: not every rank of comm came in time to tell its process sets; "
                "all of them give as many with communicators"
            )
            raise HorovodInternalError(message)
        time.sleep(0.0005)  # MPI has nothing to sleep on


def _gather_numbers(job: Any, mine: Sequence[int], deadline: float) -> list[list[int]]:
    """Return what every process of `job` gave, by rank."""
    length, counts = array("i", [len(mine)]), array("i", [0] * job.Get_size())
    _await(job.Iallgather(length, counts), (length, counts), deadline)
    flat, everything = array("i", mine), array("i", [0] * sum(counts))
    _await(job.Iallgatherv(flat, (everything, counts)), (flat, everything, counts), deadline)
    ends = [sum(counts[: rank + 1]) for rank in range(len(counts))]
    return [list(everything[end - count : end]) for end, count in zip(ends, counts, strict=True)]


def gather_sets(job: Any, mine: Sequence[Sequence[int]], deadline: float) -> list[tuple[int, ...]]:
    """Return the sets of ranks that the processes of `job` name, each once, the same on all.

    Each process gives those of its own communicators, which may differ from the others': a split
    gives every process the part that it is in. In the order of the lists, then of the ranks. A
    process without part in one gives an empty set there, which is left out. Blocks until all have
    come or the deadline (of time.monotonic) has passed.
    """
    flat = [len(mine), *chain.from_iterable((len(ranks), *ranks) for ranks in mine)]
    lists = [_unflatten(numbers) for numbers in _gather_numbers(job, flat, deadline)]
    lengths = [len(sets) for sets in lists]
    if len(set(lengths)) > 1:
        message = f"init: ranks give different numbers of process sets with communicators: {lengths}"
        raise ValueError(message)
    sets = dict.fromkeys(chain.from_iterable(zip(*lists, strict=True)))
    for ranks in sets:
        if ranks and ranks[0] < 0:
            message = "init: a process set has a communicator with processes that are not in comm"
            raise ValueError(message)
    return [ranks for ranks in sets if ranks]


def _unflatten(numbers: list[int]) -> list[tuple[int, ...]]:
    sets = []
    at = 1
    for _ in range(numbers[0]):
        length = numbers[at]
        sets.append(tuple(numbers[at + 1 : at + 1 + length]))
        at += 1 + length
    return sets
