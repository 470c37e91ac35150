"""A sampler that goes on in the middle of an epoch after the number of ranks has changed."""

from __future__ import annotations

import math
import random
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from torch.utils.data import Sampler

from horovod.torch.mpi_ops import rank, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized


class ElasticSampler(Sampler[int]):
    """Splits a dataset among the ranks, and leaves out what the epoch has processed already.

    Part of an elastic state: after a reset the samples that are left are split anew. Call
    `record_batch` after each batch, commit now and then, and `set_epoch` at the end of an epoch.

    Arguments:
        dataset: what the indices count.
        shuffle: in an order that the seed and the epoch decide.
        seed: the same on all ranks.

    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int = 0) -> None:
        """All ranks must give the same `seed`: the order of samples follows from it and the epoch."""
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.epoch = 0
        self.processed_num = 0
        self.processed_indices: set[int] = set()
        self.num_replicas = 0
        self.rank = 0
        self.remaining_indices: list[int] = []
        self.num_samples = 0
        self.total_size = 0
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch with another order of samples; call it at the end of the one before."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_idx: int, batch_size: int) -> None:
        """Count a batch that every rank has processed; `batch_idx` has no effect."""
        del batch_idx
        self.processed_num += batch_size * self.num_replicas

    @property
    def indices(self) -> list[int]:
        """The share of this rank in what is left, as it is iterated over."""
        return list(self)

    def get_indices(self, batch_idx: int, batch_size: int) -> list[int]:
        """Return the samples of a batch of this rank's share."""
        begin = batch_idx * batch_size
        return self.indices[begin : begin + batch_size]

    def record_indices(self, indices: Sized) -> None:
        """Count samples that this rank has processed, and every other rank as many."""
        self.record_batch(0, len(indices))

    def state_dict(self) -> dict[str, int]:
        """Return what a new worker needs to go on from here."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state that another worker has saved."""
        self.epoch = state_dict["epoch"]
        # Older releases of the original kept the samples themselves.
        old = state_dict.get("processed_indices", ())
        self.processed_num = state_dict.get("processed_num", len(old))
        self.reset()

    def reset(self) -> None:
        """Split what is left among the ranks there are now."""
        self.num_replicas = size()
        self.rank = rank()
        indices = list(range(len(self.dataset)))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(indices)  # noqa: S311 - no secret
        self.remaining_indices = indices[self.processed_num :]
        self.num_samples = math.ceil(len(self.remaining_indices) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        """Yield this rank's share; the first samples are repeated so that all shares are equal."""
        padded = islice(cycle(self.remaining_indices), self.total_size)
        return islice(padded, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        """Return the number of samples of this rank."""
        return self.num_samples
