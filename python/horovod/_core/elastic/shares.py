"""Which samples of an epoch this rank processes next; plain index lists, for any framework.

Over any number of resets each sample of an epoch is processed once: what has been processed is a prefix
of the epoch's order, and every rank takes every n-th of what is left.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from horovod._core.basics import basics


class ElasticIndices:
    """The samples of a dataset, split among the ranks anew after each reset.

    An attribute of a state, like ElasticSampler of horovod.torch: iterate over it (or give it to
    tf.data.Dataset.from_generator), call record_batch after each batch, and set_epoch at the end of an epoch.
    """

    def __init__(
        self, length: int, shuffle: bool = True, seed: int = 0, *, drop_remainder: bool = False
    ) -> None:
        """Order `length` samples by seed and epoch; all ranks give the same.

        The last samples do not fill all ranks: some are repeated, or left out with `drop_remainder`.
        """
        self.length = length
        self.shuffle = shuffle
        self.seed = seed
        self.drop_remainder = drop_remainder
        self.epoch = 0
        self.processed_num = 0
        self.rank = 0
        self.num_replicas = 1
        self.remaining_indices: list[int] = []
        self.reset()

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        self.epoch = epoch
        self.processed_num = 0
        self.reset()

    def record_batch(self, batch_size: int) -> None:
        """Count a batch that every rank has processed."""
        self.processed_num += batch_size * self.num_replicas

    def reset(self) -> None:
        """Split what is left of the epoch among the ranks there are now."""
        self.num_replicas, self.rank = basics.size(), basics.rank()
        order = list(range(self.length))
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(order)  # noqa: S311 - no secret
        self.remaining_indices = order[self.processed_num :]

    def state_dict(self) -> dict[str, int]:
        """Return what another worker needs to go on from here."""
        return {"epoch": self.epoch, "processed_num": self.processed_num}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there."""
        self.epoch = state_dict["epoch"]
        self.processed_num = state_dict["processed_num"]
        self.reset()

    def __len__(self) -> int:
        """Return the number of samples of this rank."""
        share = len(self.remaining_indices) / self.num_replicas
        return math.floor(share) if self.drop_remainder else math.ceil(share)

    def __iter__(self) -> Iterator[int]:
        """Yield this rank's samples."""
        total = len(self) * self.num_replicas
        return islice(islice(cycle(self.remaining_indices), total), self.rank, None, self.num_replicas)
