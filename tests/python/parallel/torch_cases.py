"""Values that every rank can compute for every other rank, so that results can be checked locally."""

from __future__ import annotations

import torch

import horovod.torch as hvd

ALL_DTYPES = [
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
]
if hasattr(torch, "uint16"):
    ALL_DTYPES.append(torch.uint16)
FLOAT_DTYPES = [dtype for dtype in ALL_DTYPES if dtype.is_floating_point]
SHAPES = [(), (1,), (17,), (5, 3), (4, 3, 2), (0, 3), (2, 2, 2, 2, 2)]
SHAPES_WITH_ROWS = [(1,), (17,), (5, 3), (4, 3, 2), (0, 3)]


def value_of(rank: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Small integers that differ by rank and place: sums of a few ranks are exact in any dtype."""
    count = int(torch.Size(shape).numel())
    places = torch.arange(count, dtype=torch.int64) % 5
    return ((places + 2 * rank) % 7 + 1).reshape(shape).to(dtype)


def sum_of(ranks: list[int], shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return the sum over ranks, computed in float64."""
    total = torch.zeros(shape, dtype=torch.float64)
    for rank in ranks:
        total += value_of(rank, shape, torch.float64)
    return total.to(dtype)


def everybody() -> list[int]:
    """Return all ranks."""
    return list(range(hvd.size()))


def assert_same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Compare values, dtype and shape."""
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=0)
