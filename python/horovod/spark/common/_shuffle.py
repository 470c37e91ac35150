"""Rows in another order, inside of buffers. Nothing here starts a thread.

Fresh memory costs more than the rows that are put in it: the system clears every page. So a buffer is
filled block by block, while a block is in the caches, and is filled again when its rows have left it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ._blocks import Block, cut, length


def shuffled(blocks: Iterable[Block], buffer_rows: int, random: np.random.Generator) -> Iterator[Block]:
    """Permute rows inside of buffers of `buffer_rows` rows; the last one may have fewer."""
    if buffer_rows < 1:
        message = f"a buffer for shuffling holds 1 row or more, got {buffer_rows}"
        raise ValueError(message)
    buffer: _Buffer | None = None
    for block in blocks:
        start, rows = 0, length(block)
        if buffer is not None and not buffer.fits(block):
            yield from buffer.drained(random)
            buffer = None
        while start < rows:
            if buffer is None:
                buffer = _Buffer(block, buffer_rows)
            start += buffer.add(cut(block, start, rows))
            if buffer.is_full():
                yield from buffer.drained(random)
    if buffer is not None:
        yield from buffer.drained(random)


def permuted(block: Block, random: np.random.Generator) -> Block:
    """Return the rows in another order, in memory of their own."""
    order = random.permutation(length(block))
    return {name: values.take(order, axis=0) for name, values in block.items()}


class _Buffer:
    """Room for rows like those of one block, which grows up to its capacity as rows come."""

    def __init__(self, like: Block, capacity: int) -> None:
        self._capacity = capacity
        room = min(capacity, max(1, length(like)))
        self._columns = {
            name: np.empty((room, *values.shape[1:]), values.dtype) for name, values in like.items()
        }
        self._rows = 0

    def fits(self, block: Block) -> bool:
        """Whether the columns are the same; those that a transformation made may differ between blocks."""
        return block.keys() == self._columns.keys() and all(
            values.dtype == self._columns[name].dtype and values.shape[1:] == self._columns[name].shape[1:]
            for name, values in block.items()
        )

    def add(self, block: Block) -> int:
        """Copy as many rows as there is room for, and return how many these are."""
        count = min(length(block), self._capacity - self._rows)
        self._make_room(self._rows + count)
        for name, values in block.items():
            self._columns[name][self._rows : self._rows + count] = values[:count]
        self._rows += count
        return count

    def is_full(self) -> bool:
        return self._rows == self._capacity

    def drained(self, random: np.random.Generator) -> Iterator[Block]:
        """Yield the rows as one permuted block, unless there are none."""
        if self._rows:
            held, self._rows = cut(self._columns, 0, self._rows), 0
            yield permuted(held, random)

    def _make_room(self, rows: int) -> None:
        room = len(next(iter(self._columns.values()))) if self._columns else rows
        if rows <= room:
            return
        room = min(self._capacity, max(rows, 2 * room))
        for name, values in self._columns.items():
            grown = np.empty((room, *values.shape[1:]), values.dtype)
            grown[: self._rows] = values[: self._rows]
            self._columns[name] = grown
