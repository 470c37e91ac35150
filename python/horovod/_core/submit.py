"""Submission of operations on tensors that a front end has turned into views.

An asynchronous form returns the handle of the core, see handles.py for those of users. Every view
and the output stay alive until the operation is complete, whatever happens to the handle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _native
from .codes import (
    ALLGATHER,
    ALLREDUCE,
    ALLTOALL,
    AVERAGE,
    BROADCAST,
    NO_WIRE_DTYPE,
    REDUCESCATTER,
    SUM,
)
from .names import group_names, operation_name
from .process_sets import ProcessSet, registered_id


class TensorView(NamedTuple):
    """What the core needs to know about a tensor."""

    address: int
    dtype: int
    shape: Sequence[int]
    owner: object
    """Kept alive until the operation is complete."""
    device: int = -1
    """Number of the GPU that it lies on; -1: host memory."""
    stream: int = 0
    """Of the GPU: its work so far makes the tensor ready."""


class Reduction(NamedTuple):
    """How an allreduce or a reducescatter combines the ranks: postscale * op(prescale * x)."""

    op: int = AVERAGE
    prescale: float = 1.0
    postscale: float = 1.0
    wire_dtype: int = NO_WIRE_DTYPE


PLAIN = Reduction(op=SUM)
"""For operations that do not reduce."""

CORE_ALLOCATES = 0
"""As output: its size is known only after the ranks have agreed; see _native.take_output."""


def submit(
    kind: int,
    operation: str,
    view: TensorView,
    output: int,
    name: str | None,
    process_set: ProcessSet,
    *,
    reduction: Reduction = PLAIN,
    root_rank: int = 0,
    splits: Sequence[int] | None = None,
) -> int:
    """Hand one tensor to the core."""
    return _native.submit(
        kind=kind,
        dtype=view.dtype,
        reduce_op=reduction.op,
        process_set=registered_id(process_set),
        root_rank=root_rank,
        wire_dtype=reduction.wire_dtype,
        shape=view.shape,
        input=view.address,
        output=output,
        prescale=reduction.prescale,
        postscale=reduction.postscale,
        splits=splits,
        name=operation_name(operation, name),
        owner=view.owner,
        device=view.device,
        stream=view.stream,
    )


def allreduce(
    view: TensorView,
    output: int,
    name: str | None,
    reduction: Reduction,
    process_set: ProcessSet,
) -> int:
    """Reduce over the ranks into `output`, which may be the input."""
    return submit(ALLREDUCE, "allreduce", view, output, name, process_set, reduction=reduction)


def allgather(view: TensorView, name: str | None, process_set: ProcessSet) -> int:
    """Concatenate the tensors of the ranks along dimension 0."""
    return submit(ALLGATHER, "allgather", view, CORE_ALLOCATES, name, process_set)


def broadcast(
    view: TensorView, output: int, root_rank: int, name: str | None, process_set: ProcessSet
) -> int:
    """Give every rank the tensor of the root, which is a global rank."""
    return submit(BROADCAST, "broadcast", view, output, name, process_set, root_rank=root_rank)


def alltoall(
    view: TensorView, splits: Sequence[int] | None, name: str | None, process_set: ProcessSet
) -> int:
    """Send splits[i] rows to rank i of the set; None: as many to each."""
    return submit(ALLTOALL, "alltoall", view, CORE_ALLOCATES, name, process_set, splits=splits)


def _check_rows(view: TensorView, name: str | None) -> None:
    """Refuse at once what the ranks would refuse together: scalars have no rows to scatter."""
    if len(view.shape) == 0:
        message = (
            f"{operation_name('reducescatter', name) or 'reducescatter'}: "
            "a rank-zero tensor is not allowed here, expected at least one dimension"
        )
        raise ValueError(message)


def reducescatter(view: TensorView, name: str | None, reduction: Reduction, process_set: ProcessSet) -> int:
    """Reduce over the ranks and leave each with its rows."""
    _check_rows(view, name)
    return submit(
        REDUCESCATTER, "reducescatter", view, CORE_ALLOCATES, name, process_set, reduction=reduction
    )


def group(
    kind: int,
    operation: str,
    views: Sequence[TensorView],
    outputs: Sequence[int],
    name: str | None,
    process_set: ProcessSet,
    *,
    reduction: Reduction = PLAIN,
    owner: Any = None,
) -> int:
    """Hand several tensors to the core as one operation: all or nothing."""
    if not views:
        message = f"grouped_{operation}: expected at least one tensor, got none"
        raise ValueError(message)
    if kind == REDUCESCATTER:
        for view in views:
            _check_rows(view, name)
    names = group_names(operation, name, len(views))
    return _native.submit_group(
        kind=kind,
        reduce_op=reduction.op,
        process_set=registered_id(process_set),
        wire_dtype=reduction.wire_dtype,
        prescale=reduction.prescale,
        postscale=reduction.postscale,
        tensors=[
            (view.dtype, view.shape, view.address, output, tensor_name)
            for view, output, tensor_name in zip(views, outputs, names, strict=True)
        ],
        owner=([view.owner for view in views], owner),
        device=views[0].device,
        stream=views[0].stream,
    )
