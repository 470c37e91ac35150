"""Loaders for PyTorch over a reader: any iterable of batches that are mappings from columns to arrays.

A step limit of -1 is none. The asynchronous ones read ahead in a thread (see horovod.data).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from horovod.data import AsyncDataLoaderMixin, BaseDataLoader
from horovod.spark.common._blocks import batches, joined
from horovod.spark.common._shuffle import shuffled

_UNLIMITED = -1


class PytorchDataLoader(BaseDataLoader):
    """Batches of one pass, of `batch_size` rows, as dictionaries of tensors."""

    def __init__(
        self,
        reader: Any,
        batch_size: int,
        shuffling_queue_capacity: int = 0,
        name: str = "",
        limit_step_per_epoch: int = _UNLIMITED,
        verbose: bool = False,
    ) -> None:
        """Permute the rows inside of `shuffling_queue_capacity` rows; 0: leave their order."""
        self.reader = reader
        self.batch_size = batch_size
        self.shuffling_queue_capacity = shuffling_queue_capacity
        self.name = name
        self.limit_step_per_epoch = limit_step_per_epoch
        self.verbose = verbose

    def __len__(self) -> int:
        """The limit of steps; 0 if there is none, for then it is not known."""
        return max(self.limit_step_per_epoch, 0)

    def _blocks(self) -> Iterator[dict[str, Any]]:
        blocks = ({name: _array(values) for name, values in _fields(batch)} for batch in self.reader)
        if self.shuffling_queue_capacity:
            return shuffled(blocks, self.shuffling_queue_capacity, np.random.default_rng())
        return blocks

    def _iterate(self) -> Iterator[dict[str, torch.Tensor]]:
        for index, batch in enumerate(batches(self._blocks(), self.batch_size)):
            if index == self.limit_step_per_epoch:
                return
            yield {name: torch.as_tensor(values) for name, values in batch.items()}


def _fields(batch: Any) -> Iterable[tuple[str, Any]]:
    """Return names and values of a mapping, or of a named tuple, as other readers give."""
    return batch.items() if isinstance(batch, Mapping) else batch._asdict().items()


def _array(values: Any) -> Any:
    return values.numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


class PytorchAsyncDataLoader(AsyncDataLoaderMixin, PytorchDataLoader):
    """The same, read ahead by a thread."""


class PytorchInfiniteDataLoader(PytorchDataLoader):
    """A pass is `limit_step_per_epoch` batches of a reader without end, and goes on where the last ended."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take a reader that repeats itself: its `num_epochs` must be None."""
        super().__init__(*args, **kwargs)
        if getattr(self.reader, "num_epochs", None) is not None:
            message = (
                f"an infinite loader needs a reader without end, not num_epochs={self.reader.num_epochs}"
            )
            raise ValueError(message)
        self._stream: Iterator[dict[str, Any]] | None = None

    def _iterate(self) -> Iterator[dict[str, torch.Tensor]]:
        if self._stream is None:
            self._stream = batches(self._blocks(), self.batch_size)
        step = 0
        while step != self.limit_step_per_epoch:
            batch = next(self._stream, None)
            if batch is None:
                return
            yield {name: torch.as_tensor(values) for name, values in batch.items()}
            step += 1


class PytorchInfiniteAsyncDataLoader(AsyncDataLoaderMixin, PytorchInfiniteDataLoader):
    """The same, read ahead by a thread."""


class PytorchInmemDataLoader(BaseDataLoader):
    """Reads everything once; a pass is `limit_step_per_epoch` batches of what is in memory."""

    def __init__(
        self,
        reader: Any,
        batch_size: int,
        num_epochs: int = 1,
        name: str = "",
        shuffle: bool = False,
        limit_step_per_epoch: int = _UNLIMITED,
        verbose: bool = False,
    ) -> None:
        """Read the whole reader."""
        if limit_step_per_epoch == _UNLIMITED:
            message = "a loader from memory needs a limit of steps: limit_step_per_epoch must not be -1"
            raise ValueError(message)
        self.batch_size = batch_size
        self.num_epochs = num_epochs
        self.name = name
        self.shuffle = shuffle
        self.limit_step_per_epoch = limit_step_per_epoch
        self.verbose = verbose
        read = [{key: _array(values) for key, values in _fields(batch)} for batch in reader]
        if not read:
            message = "the reader gave no batch"
            raise ValueError(message)
        self._rows = {key: torch.as_tensor(values) for key, values in joined(read).items()}
        self._position = 0
        self._order = self._next_order()

    def _next_order(self) -> list[int]:
        order = list(range(len(next(iter(self._rows.values())))))
        if self.shuffle:
            random.shuffle(order)
        return order

    def __len__(self) -> int:
        """The batches of a pass."""
        return self.limit_step_per_epoch

    def _iterate(self) -> Iterator[dict[str, torch.Tensor]]:
        for _ in range(self.limit_step_per_epoch):
            chosen: list[int] = []
            while len(chosen) < self.batch_size:
                if self._position == len(self._order):
                    self._order, self._position = self._next_order(), 0
                taken = self._order[self._position : self._position + self.batch_size - len(chosen)]
                chosen += taken
                self._position += len(taken)
            yield {name: values[chosen] for name, values in self._rows.items()}


class PytorchInmemAsyncDataLoader(AsyncDataLoaderMixin, PytorchInmemDataLoader):
    """The same, with batches made ahead by a thread."""


class PetastormBatchedDataLoader(PytorchDataLoader):
    """The name of the loader that takes whole batches of a reader, which all of these do."""
