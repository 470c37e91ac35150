"""Autograd functions of the grouped operations; see _autograd.py."""

from __future__ import annotations

from typing import Any

import torch

from horovod._core.codes import ADASUM
from horovod._core.process_sets import ProcessSet
from horovod._core.submit import Reduction

from . import _submit
from ._autograd import (
    MEAN,
    Function,
    HorovodAllreduce,
    check_linear,
    row_offsets,
    rows_first,
    sum_factor,
)
from ._handles import synchronize

# Arguments and contexts of autograd functions have no static types in torch.


def _contiguous(tensors: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    return [tensor.contiguous() for tensor in tensors]


class HorovodGroupedAllreduce(Function):
    """Gradient: the same reduction of the gradients, as a group."""

    @staticmethod
    def forward(
        reduction: Reduction, process_set: ProcessSet, name: str | None, *tensors: torch.Tensor
    ) -> Any:
        """Run the operation."""
        handle = _submit.grouped_allreduce(_contiguous(tensors), None, name, reduction, process_set)
        return synchronize(handle)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward needs."""
        del output
        ctx.reduction, ctx.process_set = inputs[0], inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """Reduce the gradients."""
        reduced = HorovodGroupedAllreduce.apply(ctx.reduction, ctx.process_set, None, *grads)
        return (None, None, None, *reduced)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Reduce the tangents."""
        check_linear(ctx.reduction)
        return HorovodGroupedAllreduce.apply(ctx.reduction, ctx.process_set, None, *tangents[3:])

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        reduction: Reduction,
        process_set: ProcessSet,
        name: str | None,
        *tensors: torch.Tensor,
    ) -> Any:
        """Send the batches as they are."""
        del info
        dims = in_dims[3:]
        if reduction.op == ADASUM:
            pairs = [
                (tensor, None) if dim is None else (tensor.movedim(dim, 0), 0)
                for tensor, dim in zip(tensors, dims, strict=True)
            ]
            results = [_adasum_batch(t, d, reduction, process_set) for t, d in pairs]
            return tuple(results), tuple(dim for _, dim in pairs)
        return HorovodGroupedAllreduce.apply(reduction, process_set, name, *tensors), tuple(dims)


def _adasum_batch(
    tensor: torch.Tensor, batch_dim: int | None, reduction: Reduction, process_set: ProcessSet
) -> Any:
    if batch_dim is None:
        return HorovodAllreduce.apply(tensor, reduction, process_set, None)
    parts = [HorovodAllreduce.apply(part, reduction, process_set, None) for part in tensor]
    return torch.stack(parts)


class HorovodGroupedAllgather(Function):
    """Gradient: this rank's rows of the averages of the gradients."""

    @staticmethod
    def forward(process_set: ProcessSet, name: str | None, *tensors: torch.Tensor) -> Any:
        """Run the operation."""
        return synchronize(_submit.grouped_allgather(_contiguous(tensors), name, process_set))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward needs."""
        del output
        ctx.process_set = inputs[0]
        ctx.rows = [tensor.shape[0] for tensor in inputs[2:]]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """Average and cut out."""
        starts = row_offsets(ctx.rows, ctx.process_set)
        reduced = HorovodGroupedAllreduce.apply(MEAN, ctx.process_set, None, *grads)
        parts = [
            grad.narrow(0, start, rows) for grad, start, rows in zip(reduced, starts, ctx.rows, strict=True)
        ]
        return (None, None, *parts)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Gather the tangents."""
        return HorovodGroupedAllgather.apply(ctx.process_set, None, *tangents[2:])

    @staticmethod
    def vmap(
        info: Any, in_dims: Any, process_set: ProcessSet, name: str | None, *tensors: torch.Tensor
    ) -> Any:
        """Carry the batches along as inner dimensions."""
        del info
        dims = in_dims[2:]
        batches = [rows_first(t, d) for t, d in zip(tensors, dims, strict=True)]
        out_dims = tuple(None if dim is None else 1 for dim in dims)
        return HorovodGroupedAllgather.apply(process_set, name, *batches), out_dims


class HorovodGroupedReducescatter(Function):
    """Gradient: the gradients of all rows, with the factors of the reduction."""

    @staticmethod
    def forward(
        reduction: Reduction, process_set: ProcessSet, name: str | None, *tensors: torch.Tensor
    ) -> Any:
        """Run the operation."""
        handle = _submit.grouped_reducescatter(_contiguous(tensors), name, reduction, process_set)
        return synchronize(handle)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward needs."""
        del output
        ctx.reduction, ctx.process_set = inputs[0], inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        """Scale and gather."""
        factor = sum_factor(ctx.reduction, ctx.process_set)
        scaled = grads if factor == 1 else [grad * factor for grad in grads]
        return (None, None, None, *HorovodGroupedAllgather.apply(ctx.process_set, None, *scaled))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Reduce the tangents."""
        return HorovodGroupedReducescatter.apply(ctx.reduction, ctx.process_set, None, *tangents[3:])

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        reduction: Reduction,
        process_set: ProcessSet,
        name: str | None,
        *tensors: torch.Tensor,
    ) -> Any:
        """Carry the batches along as inner dimensions."""
        del info
        dims = in_dims[3:]
        batches = [rows_first(t, d) for t, d in zip(tensors, dims, strict=True)]
        out_dims = tuple(None if dim is None else 1 for dim in dims)
        result = HorovodGroupedReducescatter.apply(reduction, process_set, name, *batches)
        return result, out_dims
