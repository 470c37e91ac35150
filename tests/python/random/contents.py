"""What the tensors of a program hold: every rank can compute the input of every other.

All contents are such that the results are exact in every dtype, in any order of summation and for up to four
ranks:

bits      anything, for operations that move bytes, compare, or wrap
steps     multiples of 12: stay exact when scaled by halves and doubles and divided by 1, 2, 3 or 4
small     a few small integers, whose averages are truncated
factors   1, 2, 3 and their negatives, for products
disjoint  non-zero in places of their own on each rank, so that Adasum adds
equal     the same on all ranks, so that Adasum changes nothing
"""

from __future__ import annotations

from random import Random

import torch
from program import Operation, TensorSpec

_OBJECT_SIZES = (0, 1, 10, 1000, 50000)
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def dtype_of(name: str) -> torch.dtype:
    """The dtype that a specification names."""
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def other_dtype(name: str) -> str:
    """What a rank brings that disagrees: of the same sort, so that it is not refused before others see it."""
    if dtype_of(name).is_floating_point:
        return "float64" if name != "float64" else "float32"
    return "int32" if name != "int32" else "int64"


def tensor_of(operation: Operation, members: tuple[int, ...], rank: int, index: int) -> torch.Tensor:
    """The input of a rank: tensor `index` of an operation in a set of these members."""
    spec = operation.tensors[index]
    shape = spec.shape_of(members.index(rank))
    count = torch.Size(shape).numel()
    same_for_all = operation.contents == "equal"
    random = torch.Generator().manual_seed(_mix(operation.seed, 0 if same_for_all else 1 + rank, index))
    if operation.contents == "disjoint":
        values = _steps(spec, count, random)
        places = torch.arange(count) % len(members)
        values = torch.where(places == members.index(rank), values, torch.zeros_like(values))
    else:
        values = _flat(operation.contents, spec, count, random)
    return values.reshape(shape)


def object_of(operation: Operation, rank: int) -> object:
    """The object of a rank: its size differs between ranks."""
    random = Random(_mix(operation.seed, 1 + rank, 0))
    return {"rank": rank, "bytes": random.randbytes(random.choice(_OBJECT_SIZES))}


def _mix(seed: int, rank: int, index: int) -> int:
    return (seed * 1_000_003 + rank) * 1_009 + index


def _flat(contents: str, spec: TensorSpec, count: int, random: torch.Generator) -> torch.Tensor:
    dtype = dtype_of(spec.dtype)
    if dtype is torch.bool:
        return _integers(0, 2, count, random).to(dtype)
    if contents == "bits":
        width = _BITS[dtype.itemsize]
        limits = torch.iinfo(width)
        return _integers(limits.min, limits.max, count, random).to(width).view(dtype)
    is_signed = dtype.is_signed
    if contents == "small":
        return _integers(-3 if is_signed else 0, 4, count, random).to(dtype)
    if contents == "factors":
        signs = _integers(0, 2, count, random) * 2 - 1 if is_signed else 1
        return (_integers(1, 4, count, random) * signs).to(dtype)
    return _steps(spec, count, random)


def _steps(spec: TensorSpec, count: int, random: torch.Generator) -> torch.Tensor:
    dtype = dtype_of(spec.dtype)
    low, high = (-2, 3) if dtype.is_signed else (0, 5)
    return (12 * _integers(low, high, count, random)).to(dtype)


def _integers(low: int, high: int, count: int, random: torch.Generator) -> torch.Tensor:
    return torch.randint(low, high, (count,), generator=random, dtype=torch.int64)
