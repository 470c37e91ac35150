"""allreduce and broadcast: they return at once, and MXNet's engine runs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from horovod._core.average import resolve_op
from horovod._core.codes import ADASUM, ALLREDUCE, BROADCAST
from horovod._core.process_sets import ProcessSet, global_process_set

from ._arrays import check_array, check_arrays, copy_to_host, empty_like, is_on_host, may_be_blocked
from ._framework import mx
from ._push import Asked, push_group, push_one


def _checked_op(op: int) -> int:
    if op == ADASUM:
        message = (
            "allreduce: op=Adasum is not supported for MXNet, expected Average, Sum, Min, Max or Product"
        )
        raise AssertionError(message)
    return op


def _fresh(tensor: Any) -> tuple[Any, Any]:
    """Return (input, output) of an operation that leaves its tensor alone, both in host memory."""
    if is_on_host(tensor) and not may_be_blocked(tensor):
        return tensor, empty_like(tensor)
    copied = copy_to_host(tensor)
    return copied, copied


def _back(output: Any, tensor: Any) -> Any:
    return output if is_on_host(tensor) else output.as_in_context(tensor.context)


def run_fresh(asked: Asked, tensor: Any) -> Any:
    """Push an operation, and return its new array."""
    check_array(asked.operation, tensor)
    source, output = _fresh(tensor)
    push_one(asked, source, output)
    return _back(output, tensor)


def run_in_place(asked: Asked, tensor: Any) -> Any:
    """Push an operation that overwrites its tensor, and return that."""
    check_array(asked.operation, tensor)
    if is_on_host(tensor):
        push_one(asked, tensor, tensor)
        return tensor
    staged = copy_to_host(tensor)
    push_one(asked, staged, staged)
    with mx.autograd.pause():
        staged.copyto(tensor)
    return tensor


def run_group_in_place(asked: Asked, tensors: Sequence[Any]) -> Sequence[Any]:
    """Push a group that overwrites its tensors; one that is named twice takes part once."""
    check_arrays(f"grouped_{asked.operation}", tensors)
    distinct = list({id(tensor): tensor for tensor in tensors}.values())
    staged = [tensor if is_on_host(tensor) else copy_to_host(tensor) for tensor in distinct]
    push_group(asked, staged, staged)
    with mx.autograd.pause():
        for source, tensor in zip(staged, distinct, strict=True):
            if source is not tensor:
                source.copyto(tensor)
    return tensors


def allreduce(
    tensor: Any,
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> Any:
    """Combine a tensor of every rank of the set into a new array, by default as the average.

    It is computed when MXNet's engine comes to it: reading the array waits, and raises if it failed.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        priority: of the operation in MXNet's engine: higher ones run first.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.
        op: Average (also if None), Sum, Min, Max or Product.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank; raised where the result
            is read.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    chosen = _checked_op(resolve_op(op, average))
    asked = Asked(
        ALLREDUCE, "allreduce", name, priority, process_set, chosen, prescale_factor, postscale_factor
    )
    return run_fresh(asked, tensor)


def allreduce_(
    tensor: Any,
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> Any:
    """Combine a tensor of every rank of the set in place, and return it; see allreduce.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        priority: of the operation in MXNet's engine: higher ones run first.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.
        op: Average (also if None), Sum, Min, Max or Product.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank; raised where the result
            is read.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    chosen = _checked_op(resolve_op(op, average))
    asked = Asked(
        ALLREDUCE, "allreduce", name, priority, process_set, chosen, prescale_factor, postscale_factor
    )
    return run_in_place(asked, tensor)


def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> Sequence[Any]:
    """Combine several tensors as one operation, all or nothing, into new arrays.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allreduce.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        priority: of the operation in MXNet's engine: higher ones run first.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.
        op: Average (also if None), Sum, Min, Max or Product.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank; raised where the result
            is read.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    if not tensors:
        return tensors
    chosen = _checked_op(resolve_op(op, average))
    check_arrays("grouped_allreduce", tensors)
    asked = Asked(
        ALLREDUCE, "allreduce", name, priority, process_set, chosen, prescale_factor, postscale_factor
    )
    sources, outputs = zip(*map(_fresh, tensors), strict=True)
    push_group(asked, sources, outputs)
    return [_back(output, tensor) for output, tensor in zip(outputs, tensors, strict=True)]


def grouped_allreduce_(
    tensors: Sequence[Any],
    average: bool | None = None,
    name: str | None = None,
    priority: int = 0,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    op: int | None = None,
) -> Sequence[Any]:
    """Combine several tensors as one operation, all or nothing, in place.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allreduce.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        priority: of the operation in MXNet's engine: higher ones run first.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.
        op: Average (also if None), Sum, Min, Max or Product.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank; raised where the result
            is read.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    if not tensors:
        return tensors
    chosen = _checked_op(resolve_op(op, average))
    asked = Asked(
        ALLREDUCE, "allreduce", name, priority, process_set, chosen, prescale_factor, postscale_factor
    )
    return run_group_in_place(asked, tensors)


def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the tensor of the root, a global rank, as a new array on every rank; see allreduce.

    Arguments:
        tensor: what the root sends; of the same shape and dtype on the others.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.
        priority: of the operation in MXNet's engine: higher ones run first.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank; raised where the result
            is read.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    asked = Asked(BROADCAST, "broadcast", name, priority, process_set, root_rank=root_rank)
    return run_fresh(asked, tensor)


def broadcast_(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Overwrite a tensor with that of the root, a global rank, and return it; see allreduce.

    Arguments:
        tensor: what the root sends; of the same shape and dtype on the others.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.
        priority: of the operation in MXNet's engine: higher ones run first.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank; raised where the result
            is read.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    asked = Asked(BROADCAST, "broadcast", name, priority, process_set, root_rank=root_rank)
    return run_in_place(asked, tensor)
