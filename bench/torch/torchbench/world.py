"""The ranks of a job that measure together, and what they must agree on. Uses Horovod for it."""

from __future__ import annotations

import torch

import horovod.torch as hvd


class World:
    """Made after hvd.init()."""

    def __init__(self) -> None:
        """Know this rank's place."""
        self.rank: int = hvd.rank()
        self.size: int = hvd.size()

    @property
    def is_first(self) -> bool:
        """Whether this is the rank whose clock and files count."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait for the others."""
        hvd.barrier()

    def largest(self, value: float) -> float:
        """Return the largest value of any rank."""
        return self._reduced(value, hvd.Max)

    def total(self, value: float) -> float:
        """Return the sum over the ranks."""
        return self._reduced(value, hvd.Sum)

    def from_first(self, value: float) -> float:
        """Return rank 0's value."""
        tensor = torch.tensor([value], dtype=torch.float64)
        hvd.broadcast_(tensor, root_rank=0, name="bench.from_first")
        return float(tensor.item())

    def _reduced(self, value: float, op: int) -> float:
        tensor = torch.tensor([value], dtype=torch.float64)
        hvd.allreduce_(tensor, op=op, name=f"bench.reduced.{op}")
        return float(tensor.item())
