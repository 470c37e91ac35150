"""What one collective of a JAX program asks for, as a value: part of the program and of its cache keys."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from horovod._core import codes
from horovod._core.process_sets import ProcessSet

LINEAR_OPS = (codes.SUM, codes.AVERAGE)
_MOVES_ROWS = (codes.ALLGATHER, codes.ALLTOALL, codes.REDUCESCATTER)


@dataclass(frozen=True, slots=True)
class Collective:
    """One operation on one array, or on several as a group; the arrays themselves are operands."""

    kind: int
    operation: str  # "allreduce", "grouped_allgather": the word in names
    process_set: int
    set_size: int
    set_rank: int
    name: str | None = None  # None: matched by order; only outside of programs
    is_named_by_us: bool = False
    op: int = codes.SUM
    prescale: float = 1.0
    postscale: float = 1.0
    wire: int = codes.NO_WIRE_DTYPE
    root_rank: int = 0
    is_group: bool = False
    rows: tuple[int, ...] = ()  # allgather: of each result
    splits: tuple[int, ...] = ()  # alltoall: rows for each rank; empty: even
    received: tuple[int, ...] = ()  # alltoall: rows from each rank
    in_place: bool = False

    @property
    def is_linear(self) -> bool:
        """Whether tangents go through the same operation."""
        reduces = self.kind in (codes.ALLREDUCE, codes.REDUCESCATTER)
        return not reduces or self.op in LINEAR_OPS

    @property
    def moves_rows(self) -> bool:
        """Whether the first dimension means ranks; otherwise elements are independent of each other."""
        return self.kind in _MOVES_ROWS

    @property
    def label(self) -> str:
        """How errors call it."""
        return self.name or self.operation

    def derived(self, suffix: str, **changes: Any) -> Collective:
        """Return an operation that follows from this one, with a name of its own."""
        name = None if self.name is None else f"{self.name}.{suffix}"
        return replace(self, name=name, **changes)

    def result_shape(self, shape: tuple[int, ...], index: int) -> tuple[int, ...]:
        """Return the shape of result `index` for an operand of a shape."""
        if self.kind == codes.ALLGATHER:
            return (self.rows[index], *shape[1:])
        if self.kind == codes.REDUCESCATTER:
            return (scattered_rows(shape[0], self.set_size)[self.set_rank], *shape[1:])
        if self.kind == codes.ALLTOALL and self.received:
            return (sum(self.received), *shape[1:])
        return shape


def scattered_rows(rows: int, size: int) -> list[int]:
    """Return how many rows each rank gets: the first ones one more where it does not divide."""
    each, longer = divmod(rows, size)
    return [each + (rank < longer) for rank in range(size)]


_lock = threading.Lock()
_made: Counter[tuple[str, tuple[int, ...]]] = Counter()


def forget_names() -> None:
    """Count from 1 again: in a world with new ranks, which begin there."""
    with _lock:
        _made.clear()


def name_in_program(operation: str, arrays: Sequence[Any], process_set: ProcessSet) -> str:
    """Return a name that no other call of this process has, and that the same call has on every rank.

    Programs run the independent parts of a graph in any order: only names match them between ranks. The
    name counts calls on arrays alike among the same ranks, so that what one rank alone traces on other arrays
    is no matter, nor what the members of a set trace without the other ranks.
    """
    first = arrays[0]
    what = f"{first.dtype}[{','.join(map(str, first.shape))}]"
    if len(arrays) > 1:
        what = f"{len(arrays)}x{what}..{sum(array.size for array in arrays)}"
    text = f"{operation}.jax.{what}"
    ranks: tuple[int, ...] = ()
    if process_set.process_set_id != codes.GLOBAL_PROCESS_SET:
        text = f"{text}.set_{process_set.process_set_id}"
        ranks = tuple(process_set.ranks or ())  # ids are used again, for other ranks
    with _lock:
        _made[text, ranks] += 1
        return f"{text}.{_made[text, ranks]}"
