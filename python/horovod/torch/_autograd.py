"""Autograd functions of the operations on one tensor.

Written in the style that torch.func understands: grad, vmap, jvp, jacrev and double backward work.
Every backward and every jvp is again made of these functions, and is the same collective on all
ranks whatever their part in it, so that higher derivatives stay in step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from horovod._core import _native
from horovod._core.codes import ADASUM, AVERAGE, SUM
from horovod._core.integers import allgather_integers
from horovod._core.process_sets import ProcessSet
from horovod._core.submit import Reduction

from . import _submit
from ._handles import synchronize

# Arguments and contexts of autograd functions have no static types in torch.


MEAN = Reduction(op=AVERAGE)


class Function(torch.autograd.Function):
    """torch.autograd.Function with a type for `apply`."""

    if TYPE_CHECKING:

        @classmethod
        def apply(cls, *args: Any, **kwargs: Any) -> Any:
            """Run forward, and backward when its time comes."""


def check_linear(reduction: Reduction) -> None:
    """Raise for operations that have no forward derivative."""
    if reduction.op not in (SUM, AVERAGE):
        message = "forward-mode derivatives exist for op=Sum and op=Average only"
        raise NotImplementedError(message)


def rows_first(tensor: torch.Tensor, batch_dim: int | None) -> torch.Tensor:
    """Put the batch dimension of vmap behind the rows, where collectives carry it along."""
    return tensor if batch_dim is None else tensor.movedim(batch_dim, 1)


def sum_factor(reduction: Reduction, process_set: ProcessSet) -> float:
    """Return what the gradient of a reducescatter is multiplied with."""
    size = (process_set.size() or 1) if reduction.op == SUM else 1
    return size * reduction.prescale * reduction.postscale


class HorovodAllreduce(Function):
    """Gradient: the same reduction of the gradients."""

    @staticmethod
    def forward(tensor: torch.Tensor, reduction: Reduction, process_set: ProcessSet, name: str | None) -> Any:
        """Run the operation."""
        handle = _submit.allreduce(tensor.contiguous(), None, name, reduction, process_set)
        return synchronize(handle)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward needs."""
        del output
        _, ctx.reduction, ctx.process_set, _ = inputs

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Reduce the gradient."""
        return HorovodAllreduce.apply(grad, ctx.reduction, ctx.process_set, None), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, *others: Any) -> Any:
        """Reduce the tangent."""
        del others
        check_linear(ctx.reduction)
        return HorovodAllreduce.apply(tangent, ctx.reduction, ctx.process_set, None)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        tensor: torch.Tensor,
        reduction: Reduction,
        process_set: ProcessSet,
        name: str | None,
    ) -> Any:
        """Send the whole batch as one tensor; not with Adasum, which looks at whole tensors."""
        del info
        if reduction.op != ADASUM:
            return HorovodAllreduce.apply(tensor, reduction, process_set, name), in_dims[0]
        parts = [
            HorovodAllreduce.apply(part, reduction, process_set, None) for part in tensor.unbind(in_dims[0])
        ]
        return torch.stack(parts), 0


class HorovodAllgather(Function):
    """Gradient: this rank's rows of the average of the gradients."""

    @staticmethod
    def forward(tensor: torch.Tensor, process_set: ProcessSet, name: str | None) -> Any:
        """Run the operation."""
        return synchronize(_submit.allgather(tensor.contiguous(), name, process_set))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward needs."""
        del output
        tensor, ctx.process_set, _ = inputs
        ctx.rows = tensor.shape[0]

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Average and cut out."""
        start = row_offsets([ctx.rows], ctx.process_set)[0]
        reduced = HorovodAllreduce.apply(grad, MEAN, ctx.process_set, None)
        return reduced.narrow(0, start, ctx.rows), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, *others: Any) -> Any:
        """Gather the tangents."""
        del others
        return HorovodAllgather.apply(tangent, ctx.process_set, None)

    @staticmethod
    def vmap(info: Any, in_dims: Any, tensor: torch.Tensor, process_set: ProcessSet, name: str | None) -> Any:
        """Carry the batch along as an inner dimension."""
        del info
        return HorovodAllgather.apply(rows_first(tensor, in_dims[0]), process_set, name), 1


def row_offsets(rows: Sequence[int], process_set: ProcessSet) -> list[int]:
    """Return where the rows of this rank begin in each of several gathered tensors."""
    # Not a tensor: inside torch.func even a new tensor has no memory of its own.
    before = allgather_integers(rows, process_set)[: process_set.rank()]
    return [sum(row[i] for row in before) for i in range(len(rows))]


class HorovodBroadcast(Function):
    """Gradient: the average of the gradients on the root, zero elsewhere."""

    @staticmethod
    def forward(tensor: torch.Tensor, root_rank: int, process_set: ProcessSet, name: str | None) -> Any:
        """Run the operation."""
        return synchronize(_submit.broadcast(tensor.contiguous(), None, root_rank, name, process_set))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward needs."""
        del output
        _, ctx.root_rank, ctx.process_set, _ = inputs

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Average; a product with zero keeps the collective in the graph of every rank."""
        reduced = HorovodAllreduce.apply(grad, MEAN, ctx.process_set, None)
        return (reduced if _native.rank() == ctx.root_rank else reduced * 0), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, *others: Any) -> Any:
        """Broadcast the tangent."""
        del others
        return HorovodBroadcast.apply(tangent, ctx.root_rank, ctx.process_set, None)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        tensor: torch.Tensor,
        root_rank: int,
        process_set: ProcessSet,
        name: str | None,
    ) -> Any:
        """Send the whole batch; the ranks must agree about its place, so it comes first."""
        del info
        batch = tensor.movedim(in_dims[0], 0)
        return HorovodBroadcast.apply(batch, root_rank, process_set, name), 0


class HorovodAlltoall(Function):
    """Gradient: every row goes back to where it came from."""

    @staticmethod
    def forward(
        tensor: torch.Tensor,
        splits: Any,
        process_set: ProcessSet,
        name: str | None,
    ) -> Any:
        """Run the operation: (output, received splits)."""
        return synchronize(_submit.alltoall(tensor.contiguous(), splits, name, process_set))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward needs."""
        tensor, ctx.splits, ctx.process_set, _ = inputs
        ctx.rows = tensor.shape[0]
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, *others: Any) -> Any:
        """Send back; rows that were not sent have no gradient."""
        del others
        (received,) = ctx.saved_tensors
        result = HorovodAlltoall.apply(grad, received, ctx.process_set, None)[0]
        missing = ctx.rows - result.shape[0]
        if missing > 0:
            unsent = result.new_zeros((missing, *result.shape[1:]))
            result = torch.cat([result, unsent])
        return result, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, *others: Any) -> Any:
        """Exchange the tangents."""
        del others
        return HorovodAlltoall.apply(tangent, ctx.splits, ctx.process_set, None)[0], None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        tensor: torch.Tensor,
        splits: Any,
        process_set: ProcessSet,
        name: str | None,
    ) -> Any:
        """Carry the batch along as an inner dimension."""
        del info
        result = HorovodAlltoall.apply(rows_first(tensor, in_dims[0]), splits, process_set, name)
        return result, (1, None)


class HorovodReducescatter(Function):
    """Gradient: the gradients of all rows, with the factors of the reduction."""

    @staticmethod
    def forward(tensor: torch.Tensor, reduction: Reduction, process_set: ProcessSet, name: str | None) -> Any:
        """Run the operation."""
        handle = _submit.reducescatter(tensor.contiguous(), name, reduction, process_set)
        return synchronize(handle)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what backward needs."""
        del output
        _, ctx.reduction, ctx.process_set, _ = inputs

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        """Scale and gather."""
        factor = sum_factor(ctx.reduction, ctx.process_set)
        scaled = grad if factor == 1 else grad * factor
        return HorovodAllgather.apply(scaled, ctx.process_set, None), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: torch.Tensor, *others: Any) -> Any:
        """Reduce the tangent."""
        del others
        return HorovodReducescatter.apply(tangent, ctx.reduction, ctx.process_set, None)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Any,
        tensor: torch.Tensor,
        reduction: Reduction,
        process_set: ProcessSet,
        name: str | None,
    ) -> Any:
        """Carry the batch along as an inner dimension."""
        del info
        batch = rows_first(tensor, in_dims[0])
        return HorovodReducescatter.apply(batch, reduction, process_set, name), 1


# torch has no public question for these two.
transforms_active = torch._C._are_functorch_transforms_active  # noqa: SLF001
_forward_mode = torch.autograd.forward_ad


def is_wanted(tensor: torch.Tensor) -> bool:
    """Return whether an operation on the tensor must go through its autograd function."""
    return (
        (tensor.requires_grad and torch.is_grad_enabled())
        or transforms_active()
        or _forward_mode._current_level >= 0  # noqa: SLF001
    )
