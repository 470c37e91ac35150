"""Tensors that are not in host memory travel through a copy.

There is no device here: a tensor that claims to be elsewhere takes the same way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch_cases import assert_same, everybody, sum_of, value_of

import horovod.torch as hvd


class Elsewhere(torch.Tensor):
    """A tensor that must be copied to be read by the core."""

    is_cpu = False  # type: ignore[assignment]

    def to(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        return self.as_subclass(torch.Tensor).clone()

    def data_ptr(self) -> int:
        message = "the core must not look at this memory"
        raise AssertionError(message)


def elsewhere(rank: int) -> torch.Tensor:
    return value_of(rank, (4, 3), torch.float32).as_subclass(Elsewhere)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(torch.Tensor)


def test_reductions(rank: int) -> None:
    mine = elsewhere(rank)

    summed = hvd.allreduce(mine, op=hvd.Sum)
    grouped = hvd.grouped_allreduce([mine, elsewhere(rank)], op=hvd.Sum)
    in_place = elsewhere(rank)
    returned = hvd.allreduce_(in_place, op=hvd.Sum)

    expected = sum_of(everybody(), (4, 3), torch.float32)
    assert_same(plain(mine), value_of(rank, (4, 3), torch.float32))
    assert returned is in_place
    for result in (summed, *grouped, in_place):
        assert_same(plain(result), expected)


def test_movement(rank: int, size: int) -> None:
    gathered = hvd.allgather(elsewhere(rank))
    copied = hvd.broadcast(elsewhere(rank), 0)
    in_place = hvd.broadcast_(elsewhere(rank), size - 1)

    assert_same(plain(gathered), torch.cat([value_of(r, (4, 3), torch.float32) for r in everybody()]))
    assert_same(plain(copied), value_of(0, (4, 3), torch.float32))
    assert_same(plain(in_place), value_of(size - 1, (4, 3), torch.float32))


def test_gradients(rank: int, size: int) -> None:
    mine = elsewhere(rank).requires_grad_()

    hvd.allreduce(mine, op=hvd.Sum).sum().backward()

    assert mine.grad is not None
    assert_same(plain(mine.grad), torch.full((4, 3), float(size)))
