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


# Only for releases of JAX in which nobody can tell names apart in the finished program (_call_sites.py).
_lock = threading.Lock()
_made: Counter[tuple[str, tuple[int, ...]]] | None = None


def count_names() -> None:
    """Count calls of this process from now on: names are told apart when they are traced."""
    global _made  # noqa: PLW0603 - a property of the process
    _made = Counter()


def names_are_counted() -> bool:
    """Return whether names are told apart when they are traced."""
    return _made is not None


def forget_names() -> None:
    """Count from 1 again: in a world with new ranks, which begin there."""
    if _made is not None:
        with _lock:
            _made.clear()


def name_in_program(operation: str, arrays: Sequence[Any], process_set: ProcessSet) -> str:
    """Return how an operation that the user gave no name is called: by what it works on, and with whom.

    Calls alike get the same one here. Programs run the independent parts of a graph in any order, and only
    names match them between ranks: each gets one of its own when its program is finished (_call_sites.py).
    """
    text = f"{operation}.jax{_described(arrays)}"
    ranks: tuple[int, ...] = ()
    if process_set.process_set_id != codes.GLOBAL_PROCESS_SET:
        text = f"{text}.set_{process_set.process_set_id}"
        ranks = tuple(process_set.ranks or ())  # ids are used again, for other ranks
    if _made is None:
        return text
    with _lock:
        _made[text, ranks] += 1
        return f"{text}.{_made[text, ranks]}"


def _described(arrays: Sequence[Any]) -> str:
    if not arrays:
        return ""
    what = f"{arrays[0].dtype}[{','.join(map(str, arrays[0].shape))}]"
    return f".{what}" if len(arrays) == 1 else f".{len(arrays)}x{what}..{sum(a.size for a in arrays)}"
