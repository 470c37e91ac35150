"""The operations as torch.compile sees them: opaque nodes of the graph that know their shapes.

Loaded when something is compiled, used only while it is: one call costs much more than the eager way.
Inside a graph every operation is complete where it stands, so that nothing needs a handle. Ranks must
compile the same operations in the same order.

An allgather in a graph has a size that is known when it is compiled: every rank gives the same number
of rows (the gradient of a reducescatter knows its rows otherwise).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.library import custom_op

from horovod._core import _native
from horovod._core.process_sets import ProcessSet, registered_id
from horovod._core.submit import Reduction

from . import _submit
from ._autograd import MEAN, sum_factor
from ._handles import synchronize

Tensor = torch.Tensor

# Said, and not left to torch to find out: releases differ in the annotations that they understand.
_PLACE = "SymInt process_set, str? name"
_REDUCTION = f"SymInt op, float prescale, float postscale, SymInt wire, {_PLACE}"


def _set(process_set: int) -> ProcessSet:
    return ProcessSet.with_id(process_set)


# ---- allreduce


@custom_op("horovod::allreduce", mutates_args=(), schema=f"(Tensor tensor, {_REDUCTION}) -> Tensor")
def _allreduce(
    tensor: Tensor,
    op: int,
    prescale: float,
    postscale: float,
    wire: int,
    process_set: int,
    name: str | None,
) -> Tensor:
    reduction = Reduction(op, prescale, postscale, wire)
    handle = _submit.allreduce(tensor.contiguous(), None, name, reduction, _set(process_set))
    result: Tensor = synchronize(handle)
    return result


@_allreduce.register_fake
def _(tensor: Tensor, *_: object) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _keep_reduction(ctx: Any, inputs: Any, output: Any) -> None:
    del output
    ctx.reduction = inputs[1:6]


def _allreduce_backward(ctx: Any, grad: Tensor) -> Any:
    return _allreduce(grad, *ctx.reduction, None), None, None, None, None, None, None


_allreduce.register_autograd(_allreduce_backward, setup_context=_keep_reduction)


@custom_op(
    "horovod::allreduce_",
    mutates_args=("tensor",),
    schema=f"(Tensor(a0!) tensor, SymInt op, float prescale, float postscale, {_PLACE}) -> ()",
)
def _allreduce_in_place(
    tensor: Tensor,
    op: int,
    prescale: float,
    postscale: float,
    process_set: int,
    name: str | None,
) -> None:
    reduction = Reduction(op, prescale, postscale)
    target = tensor.contiguous()
    synchronize(_submit.allreduce(target, target, name, reduction, _set(process_set)))
    if target is not tensor:
        tensor.copy_(target)


@custom_op(
    "horovod::grouped_allreduce",
    mutates_args=(),
    schema=f"(Tensor[] tensors, {_REDUCTION}) -> Tensor[]",
)
def _grouped_allreduce(
    tensors: list[Tensor],
    op: int,
    prescale: float,
    postscale: float,
    wire: int,
    process_set: int,
    name: str | None,
) -> list[Tensor]:
    reduction = Reduction(op, prescale, postscale, wire)
    inputs = [tensor.contiguous() for tensor in tensors]
    handle = _submit.grouped_allreduce(inputs, None, name, reduction, _set(process_set))
    return list(synchronize(handle))


@_grouped_allreduce.register_fake
def _(tensors: list[Tensor], *_: object) -> list[Tensor]:
    return [torch.empty_like(t, memory_format=torch.contiguous_format) for t in tensors]


def _grouped_backward(ctx: Any, grads: list[Tensor]) -> Any:
    return _grouped_allreduce(grads, *ctx.reduction, None), None, None, None, None, None, None


_grouped_allreduce.register_autograd(_grouped_backward, setup_context=_keep_reduction)


# ---- allgather: `rows` are those of all ranks together; -1: each has as many as this one


def _all_rows(tensor: Tensor, rows: int, process_set: int) -> int:
    if rows >= 0:
        return rows
    return int(tensor.shape[0] * _native.process_set_size(process_set))


@custom_op("horovod::allgather", mutates_args=(), schema=f"(Tensor tensor, SymInt rows, {_PLACE}) -> Tensor")
def _allgather(tensor: Tensor, rows: int, process_set: int, name: str | None) -> Tensor:
    result: Tensor = synchronize(_submit.allgather(tensor.contiguous(), name, _set(process_set)))
    expected = _all_rows(tensor, rows, process_set)
    if result.shape[0] != expected:
        message = (
            f"allgather inside torch.compile: the ranks have {result.shape[0]} rows together, "
            f"expected {expected}: every rank must have as many as this one, {tensor.shape[0]}"
        )
        raise ValueError(message)
    return result


@_allgather.register_fake
def _(tensor: Tensor, rows: int, process_set: int, name: str | None) -> Tensor:
    del name
    count = rows if rows >= 0 else tensor.shape[0] * _native.process_set_size(process_set)
    return tensor.new_empty((count, *tensor.shape[1:]))


def _keep_rows(ctx: Any, inputs: Any, output: Any) -> None:
    del output
    tensor, ctx.all_rows, ctx.process_set, _ = inputs
    ctx.rows = tensor.shape[0]


def _allgather_backward(ctx: Any, grad: Tensor) -> Any:
    mean = _allreduce(grad, *MEAN, ctx.process_set, None)
    if ctx.all_rows >= 0:
        first, _ = _rows_of_this_rank(ctx.all_rows, ctx.process_set)
    else:
        first = ctx.rows * _native.process_set_rank(ctx.process_set)
    return mean.narrow(0, first, ctx.rows).clone(), None, None, None


_allgather.register_autograd(_allgather_backward, setup_context=_keep_rows)


# ---- broadcast


@custom_op(
    "horovod::broadcast", mutates_args=(), schema=f"(Tensor tensor, SymInt root_rank, {_PLACE}) -> Tensor"
)
def _broadcast(tensor: Tensor, root_rank: int, process_set: int, name: str | None) -> Tensor:
    handle = _submit.broadcast(tensor.contiguous(), None, root_rank, name, _set(process_set))
    result: Tensor = synchronize(handle)
    return result


@_broadcast.register_fake
def _(tensor: Tensor, *_: object) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _keep_root(ctx: Any, inputs: Any, output: Any) -> None:
    del output
    _, ctx.root_rank, ctx.process_set, _ = inputs


def _broadcast_backward(ctx: Any, grad: Tensor) -> Any:
    mean = _allreduce(grad, *MEAN, ctx.process_set, None)
    return (mean if _native.rank() == ctx.root_rank else mean * 0), None, None, None


_broadcast.register_autograd(_broadcast_backward, setup_context=_keep_root)


@custom_op(
    "horovod::broadcast_",
    mutates_args=("tensor",),
    schema=f"(Tensor(a0!) tensor, SymInt root_rank, {_PLACE}) -> ()",
)
def _broadcast_in_place(tensor: Tensor, root_rank: int, process_set: int, name: str | None) -> None:
    target = tensor.contiguous()
    synchronize(_submit.broadcast(target, target, root_rank, name, _set(process_set)))
    if target is not tensor:
        tensor.copy_(target)


# ---- alltoall


@custom_op("horovod::alltoall", mutates_args=(), schema=f"(Tensor tensor, {_PLACE}) -> Tensor")
def _alltoall(tensor: Tensor, process_set: int, name: str | None) -> Tensor:
    handle = _submit.alltoall(tensor.contiguous(), None, name, _set(process_set))
    result: Tensor = synchronize(handle)[0]
    return result


@_alltoall.register_fake
def _(tensor: Tensor, *_: object) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _keep_set(ctx: Any, inputs: Any, output: Any) -> None:
    del output
    ctx.process_set = inputs[1]


def _alltoall_backward(ctx: Any, grad: Tensor) -> Any:
    return _alltoall(grad, ctx.process_set, None), None, None


_alltoall.register_autograd(_alltoall_backward, setup_context=_keep_set)


@custom_op(
    "horovod::alltoall_splits",
    mutates_args=(),
    schema=f"(Tensor tensor, Tensor splits, {_PLACE}) -> (Tensor, Tensor)",
)
def _alltoall_splits(
    tensor: Tensor, splits: Tensor, process_set: int, name: str | None
) -> tuple[Tensor, Tensor]:
    handle = _submit.alltoall(tensor.contiguous(), splits, name, _set(process_set))
    output, received = synchronize(handle)
    return output, received


@_alltoall_splits.register_fake
def _(tensor: Tensor, splits: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    rows = torch.library.get_ctx().new_dynamic_size()
    return tensor.new_empty((rows, *tensor.shape[1:])), torch.empty_like(splits)


def _keep_received(ctx: Any, inputs: Any, output: Any) -> None:
    tensor, _, ctx.process_set, _ = inputs
    ctx.rows = tensor.shape[0]
    ctx.save_for_backward(output[1])


def _alltoall_splits_backward(ctx: Any, grad: Tensor, _: Any) -> Any:
    (received,) = ctx.saved_tensors
    result, _ = _alltoall_splits(grad, received, ctx.process_set, None)
    padded = grad.new_zeros((ctx.rows, *grad.shape[1:]))
    padded[: result.shape[0]] = result
    return padded, None, None, None


_alltoall_splits.register_autograd(_alltoall_splits_backward, setup_context=_keep_received)


# ---- reducescatter


@custom_op("horovod::reducescatter", mutates_args=(), schema=f"(Tensor tensor, {_REDUCTION}) -> Tensor")
def _reducescatter(
    tensor: Tensor,
    op: int,
    prescale: float,
    postscale: float,
    wire: int,
    process_set: int,
    name: str | None,
) -> Tensor:
    reduction = Reduction(op, prescale, postscale, wire)
    handle = _submit.reducescatter(tensor.contiguous(), name, reduction, _set(process_set))
    result: Tensor = synchronize(handle)
    return result


def _rows_of_this_rank(rows: int, process_set: int) -> tuple[int, int]:
    """(first row, number of rows): the first ranks have one more where it does not come out even."""
    size, rank = _native.process_set_size(process_set), _native.process_set_rank(process_set)
    each, left = rows // size, rows % size
    return each * rank + min(rank, left), each + (1 if rank < left else 0)


@_reducescatter.register_fake
def _(
    tensor: Tensor,
    op: int,
    prescale: float,
    postscale: float,
    wire: int,
    process_set: int,
    name: str | None,
) -> Tensor:
    del op, prescale, postscale, wire, name
    _, count = _rows_of_this_rank(tensor.shape[0], process_set)
    return tensor.new_empty((count, *tensor.shape[1:]))


def _keep_whole(ctx: Any, inputs: Any, output: Any) -> None:
    _keep_reduction(ctx, inputs, output)
    ctx.rows = inputs[0].shape[0]


def _reducescatter_backward(ctx: Any, grad: Tensor) -> Any:
    op, prescale, postscale, _, process_set = ctx.reduction
    factor = sum_factor(Reduction(op, prescale, postscale), _set(process_set))
    gathered = _allgather(grad * factor, ctx.rows, process_set, None)
    return gathered, None, None, None, None, None, None


_reducescatter.register_autograd(_reducescatter_backward, setup_context=_keep_whole)


# ---- what the public operations call while they are compiled


def allreduce(tensor: Tensor, name: str | None, reduction: Reduction, process_set: ProcessSet) -> Tensor:
    """See mpi_ops.allreduce."""
    result: Tensor = _allreduce(tensor, *reduction, registered_id(process_set), name)
    return result


def allreduce_(tensor: Tensor, name: str | None, reduction: Reduction, process_set: ProcessSet) -> Tensor:
    """See mpi_ops.allreduce_."""
    op, prescale, postscale, _ = reduction
    _allreduce_in_place(tensor, op, prescale, postscale, registered_id(process_set), name)
    return tensor


def grouped_allreduce(
    tensors: Sequence[Tensor], name: str | None, reduction: Reduction, process_set: ProcessSet
) -> list[Tensor]:
    """See mpi_ops.grouped_allreduce."""
    result: list[Tensor] = _grouped_allreduce(list(tensors), *reduction, registered_id(process_set), name)
    return result


def allgather(tensor: Tensor, name: str | None, process_set: ProcessSet) -> Tensor:
    """See mpi_ops.allgather."""
    result: Tensor = _allgather(tensor, -1, registered_id(process_set), name)
    return result


def broadcast(tensor: Tensor, root_rank: int, name: str | None, process_set: ProcessSet) -> Tensor:
    """See mpi_ops.broadcast."""
    result: Tensor = _broadcast(tensor, root_rank, registered_id(process_set), name)
    return result


def broadcast_(tensor: Tensor, root_rank: int, name: str | None, process_set: ProcessSet) -> Tensor:
    """See mpi_ops.broadcast_."""
    _broadcast_in_place(tensor, root_rank, registered_id(process_set), name)
    return tensor


def alltoall(
    tensor: Tensor,
    splits: Tensor | Sequence[int] | None,
    name: str | None,
    process_set: ProcessSet,
) -> Tensor | tuple[Tensor, Tensor]:
    """See mpi_ops.alltoall."""
    number = registered_id(process_set)
    result: Tensor | tuple[Tensor, Tensor]
    if splits is None:
        result = _alltoall(tensor, number, name)
        return result
    if not isinstance(splits, torch.Tensor):
        splits = torch.tensor(splits, dtype=torch.int32)
    result = _alltoall_splits(tensor, splits, number, name)
    return result


def reducescatter(tensor: Tensor, name: str | None, reduction: Reduction, process_set: ProcessSet) -> Tensor:
    """See mpi_ops.reducescatter."""
    result: Tensor = _reducescatter(tensor, *reduction, registered_id(process_set), name)
    return result
