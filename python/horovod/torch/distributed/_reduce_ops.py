"""What torch's reduce operations mean for the core, and the ones that it does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.distributed import ReduceOp

from horovod._core import codes
from horovod.torch._tensors import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable

PLAIN_OPS: dict[object, int] = {
    ReduceOp.SUM: codes.SUM,
    ReduceOp.AVG: codes.AVERAGE,
    ReduceOp.MIN: codes.MIN,
    ReduceOp.MAX: codes.MAX,
    ReduceOp.PRODUCT: codes.PRODUCT,
}
_BITWISE: dict[object, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}
# For truth values the core's minimum and maximum are "and" and "or".
_OF_BOOL = {ReduceOp.BAND: codes.MIN, ReduceOp.BOR: codes.MAX}


class Reduction(NamedTuple):
    """An operation of the core; factor multiplies every input first."""

    code: int
    factor: float = 1.0


def kind_of(op: object) -> object:
    """The plain enumerator in torch's operation object."""
    return getattr(op, "op", op)


def reduction_for(op: object, dtype: torch.dtype) -> Reduction | None:
    """How the core does `op`; None: it does not, see combine()."""
    kind = kind_of(op)
    code = PLAIN_OPS.get(kind)
    if code is not None:
        if dtype.is_complex and code not in {codes.SUM, codes.AVERAGE}:
            message = f"all_reduce: {kind} is not defined for {dtype}, expected SUM or AVG"
            raise ValueError(message)
        return Reduction(code)
    if dtype == torch.bool and kind in _OF_BOOL:
        return Reduction(_OF_BOOL[kind])
    if kind == ReduceOp.PREMUL_SUM:
        return Reduction(codes.SUM, _premultiplier(op))
    if kind in _BITWISE:
        if dtype.is_floating_point or dtype.is_complex:
            message = f"all_reduce: {kind} needs an integer or bool tensor, got {dtype}"
            raise ValueError(message)
        return None
    message = f"all_reduce: the backend horovod does not know the operation {kind}"
    raise ValueError(message)


def combine(op: object, rows: torch.Tensor) -> torch.Tensor:
    """Reduces the first dimension, here, with an operation that the core lacks."""
    combiner = _BITWISE[kind_of(op)]
    result = rows[0]
    for row in rows[1:]:
        result = combiner(result, row)
    return result


def computable(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory in a type that the core computes with."""
    seen = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    if seen.dtype not in DTYPES:
        message = f"the backend horovod cannot reduce tensors of type {tensor.dtype}"
        raise ValueError(message)
    return seen


def _premultiplier(op: object) -> float:
    factor = op.__getstate__()[1]  # type: ignore[attr-defined]
    return float(factor)
