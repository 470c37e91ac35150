"""A rank's data: one pass over its rows, or passes without end, read ahead by a thread.

The thread hands over whole blocks, so a batch costs its consumer a view and no switch of threads.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._balance import RowSlice
from ._blocks import Block, ColumnPlan, batches, joined, length, read_blocks
from ._shuffle import permuted, shuffled

# Blocks in the queue: one is consumed while one waits and one is read.
_READ_AHEAD = 2
_STOP_CHECK_SECONDS = 0.2
_CLOSE_SECONDS = 10.0
# Rows that are permuted together when the user does not say; wide rows less, by bytes.
DEFAULT_BUFFER_ROWS = 131072


@dataclass(frozen=True, slots=True)
class Shard:
    """The rows of a rank and how to read them."""

    filesystem: Any
    slices: tuple[RowSlice, ...]
    plan: ColumnPlan
    use_threads: bool = True

    @property
    def row_count(self) -> int:
        """The rows of this rank."""
        return sum(part.row_count for part in self.slices)

    def blocks(self, order: Iterable[int]) -> Iterator[Block]:
        """Read the slices in this order."""
        chosen = (self.slices[index] for index in order)
        return read_blocks(self.filesystem, chosen, self.plan, use_threads=self.use_threads)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of a shard become batches. `seed` differs between ranks; a pass adds its number."""

    batch_size: int
    shuffle: bool = False
    seed: int = 0
    buffer_rows: int = DEFAULT_BUFFER_ROWS
    in_memory: bool = False
    read_ahead: bool = True


class ShardLoader:
    """Batches of a shard as arrays by column. Iterating is one pass; `endless()` joins passes.

    Used by one thread at a time. `close` ends the reading thread of passes that were left early.
    """

    def __init__(self, shard: Shard, reading: Reading) -> None:
        """Read nothing yet."""
        self._shard = shard
        self._reading = reading
        self._passes = 0
        self._held: Block | None = None
        self._ahead: list[_ReadAhead] = []

    def __len__(self) -> int:
        """The number of batches in one pass."""
        return math.ceil(self._shard.row_count / self._reading.batch_size)

    def __iter__(self) -> Iterator[Block]:
        """Yield the batches of one pass; the last may be smaller."""
        return batches(self._started(self._pass_blocks), self._reading.batch_size)

    def endless(self) -> Iterator[Block]:
        """Yield full batches without end; a batch may hold the end of a pass and the begin of the next."""
        return batches(self._started(self._endless_blocks), self._reading.batch_size)

    def close(self) -> None:
        """Stop reading ahead."""
        for ahead in self._ahead:
            ahead.close()
        self._ahead.clear()

    def _started(self, source: Callable[[], Iterator[Block]]) -> Iterator[Block]:
        if not self._reading.read_ahead:
            return source()
        ahead = _ReadAhead(source)
        self._ahead = [each for each in self._ahead if each.is_reading()] + [ahead]
        return iter(ahead)

    def _endless_blocks(self) -> Iterator[Block]:
        if self._shard.row_count == 0:
            message = "this rank has no rows to train on"
            raise ValueError(message)
        while True:
            any_rows = False
            for block in self._pass_blocks():
                any_rows = any_rows or length(block) > 0
                yield block
            if not any_rows:
                message = "transformation_fn left no rows of this rank's data"
                raise ValueError(message)

    def _pass_blocks(self) -> Iterator[Block]:
        random = np.random.default_rng((self._reading.seed, self._passes))
        self._passes += 1
        if self._reading.in_memory:
            return self._memory_blocks(random)
        count = len(self._shard.slices)
        if not self._reading.shuffle:
            return self._shard.blocks(range(count))
        blocks = self._shard.blocks(random.permutation(count).tolist())
        return shuffled(blocks, self._reading.buffer_rows, random)

    def _memory_blocks(self, random: np.random.Generator) -> Iterator[Block]:
        if self._held is None:
            self._held = joined(list(self._shard.blocks(range(len(self._shard.slices)))))
        yield permuted(self._held, random) if self._reading.shuffle else self._held


class _ReadAhead:
    """Runs an iterator in a thread of its own; its exception is raised where its blocks are taken."""

    def __init__(self, source: Callable[[], Iterator[Block]]) -> None:
        self._source = source
        self._queue: queue.Queue[Any] = queue.Queue(_READ_AHEAD)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hvd-parquet", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for block in self._source():
                if not self._put(block):
                    return
            self._put(None)
        except Exception as error:  # noqa: BLE001 - raised again by the consumer
            self._put(error)

    def _put(self, item: Any) -> bool:
        while not self._stop.is_set():
            try:
                self._queue.put(item, timeout=_STOP_CHECK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[Block]:
        try:
            while True:
                item = self._take()
                if item is None:
                    return
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self._stop.set()

    def _take(self) -> Any:
        while True:
            try:
                return self._queue.get(timeout=_STOP_CHECK_SECONDS)
            except queue.Empty:
                if not self._thread.is_alive() and self._queue.empty():
                    message = "the thread that reads the data has ended: its loader was closed"
                    raise RuntimeError(message) from None

    def close(self) -> None:
        self._stop.set()
        # A file system that hangs must not hold the end of a training; the thread is a daemon.
        self._thread.join(_CLOSE_SECONDS)

    def is_reading(self) -> bool:
        return self._thread.is_alive()
