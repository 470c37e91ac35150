"""allgather, alltoall and reducescatter: they wait, since only all ranks together know the shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from horovod._core import _native, submit
from horovod._core.codes import ALLGATHER, AVERAGE, REDUCE_OP_NAMES, REDUCESCATTER, SUM
from horovod._core.process_sets import ProcessSet, global_process_set
from horovod._core.submit import CORE_ALLOCATES, PLAIN, Reduction

from ._arrays import check_array, check_arrays, from_core, view_now
from ._errors import as_mxnet_errors
from ._framework import mx


def _finish(handle: int, tensors: Sequence[Any]) -> list[Any]:
    """Wait for a submission, and return the arrays that the core has made for its tensors."""
    try:
        _native.wait(handle, None)
        return [from_core(_native.take_output(handle, index), like) for index, like in enumerate(tensors)]
    finally:
        _native.release(handle)


def _run_group(
    kind: int,
    operation: str,
    tensors: Sequence[Any],
    name: str | None,
    process_set: ProcessSet,
    reduction: Reduction = PLAIN,
) -> list[Any]:
    views = [view_now(f"grouped_{operation}", tensor) for tensor in tensors]
    outputs = [CORE_ALLOCATES] * len(views)
    with as_mxnet_errors():
        handle = submit.group(kind, operation, views, outputs, name, process_set, reduction=reduction)
        return _finish(handle, tensors)


def allgather(
    tensor: Any, name: str | None = None, priority: int = 0, process_set: ProcessSet = global_process_set
) -> Any:
    """Concatenate the tensors of all ranks along the first dimension, which may differ between ranks.

    Arguments:
        tensor: its rows; the first dimension may differ between ranks, the others not.
        name: what ranks match the operation by; without one they match by order.
        priority: without effect, since the call waits.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    del priority
    check_array("allgather", tensor)
    view = view_now("allgather", tensor)
    with as_mxnet_errors():
        return _finish(submit.allgather(view, name, process_set), [tensor])[0]


def grouped_allgather(
    tensors: Sequence[Any],
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Sequence[Any]:
    """Gather several tensors as one operation, all or nothing.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allgather.
        name: what ranks match the operation by; without one they match by order.
        priority: without effect, since the call waits.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    del priority
    if not tensors:
        return tensors
    check_arrays("grouped_allgather", tensors)
    return _run_group(ALLGATHER, "allgather", tensors, name, process_set)


def _rows(splits: Any) -> list[int] | None:
    """Return the splits of an alltoall as integers."""
    if splits is None:
        return None
    values = splits.asnumpy() if isinstance(splits, mx.nd.NDArray) else np.asarray(splits)
    if values.size and not np.issubdtype(values.dtype, np.integer):
        message = f"alltoall: splits must be integers, got dtype {values.dtype}"
        raise ValueError(message)
    if values.ndim != 1:
        message = f"alltoall: splits must have one dimension, got {values.ndim}"
        raise ValueError(message)
    return [int(value) for value in values]


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Send splits[i] rows to rank i of the set, and return what the others sent here.

    Without splits every rank gets as many rows; with splits the result is (output, received_splits).

    Arguments:
        tensor: rows for the ranks of the set, in rank order.
        splits: how many rows each rank gets, in rank order: one integer per rank of the
            set. None: the same number each.
        name: what ranks match the operation by; without one they match by order.
        priority: without effect, since the call waits.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    del priority
    check_array("alltoall", tensor)
    with as_mxnet_errors():
        rows = _rows(splits)
        view = view_now("alltoall", tensor)
        handle = submit.alltoall(view, rows, name, process_set)
        try:
            _native.wait(handle, None)
            output = from_core(_native.take_output(handle, 0), tensor)
            received = _native.received_splits(handle)
        finally:
            _native.release(handle)
    if splits is None:
        return output
    return output, mx.nd.array(received, ctx=mx.cpu(), dtype="int32")


def _scattering(op: int, prescale_factor: float, postscale_factor: float) -> Reduction:
    if op not in (AVERAGE, SUM):
        names = dict(enumerate(REDUCE_OP_NAMES))
        message = f"reducescatter: op must be Average or Sum, got {names.get(op, op)}"
        raise AssertionError(message)
    return Reduction(op, prescale_factor, postscale_factor)


def reducescatter(
    tensor: Any,
    op: int = AVERAGE,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Combine a tensor of every rank, and return this rank's rows of the result.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks. Needs at least one
            dimension.
        op: Average or Sum.
        name: what ranks match the operation by; without one they match by order.
        priority: without effect, since the call waits.
        process_set: the ranks that take part, all of which must call this.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    del priority
    check_array("reducescatter", tensor)
    reduction = _scattering(op, prescale_factor, postscale_factor)
    view = view_now("reducescatter", tensor)
    with as_mxnet_errors():
        return _finish(submit.reducescatter(view, name, reduction, process_set), [tensor])[0]


def grouped_reducescatter(
    tensors: Sequence[Any],
    op: int = AVERAGE,
    name: str | None = None,
    priority: int = 0,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Sequence[Any]:
    """Combine several tensors as one operation, all or nothing, and return this rank's rows of each.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of reducescatter.
        op: Average or Sum.
        name: what ranks match the operation by; without one they match by order.
        priority: without effect, since the call waits.
        process_set: the ranks that take part, all of which must call this.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.

    Raises:
        MXNetError: ranks that do not fit together, or a lost rank.
        ValueError: a value that is refused, or a process set that this rank is not in.

    """
    del priority
    if not tensors:
        return tensors
    check_arrays("grouped_reducescatter", tensors)
    reduction = _scattering(op, prescale_factor, postscale_factor)
    return _run_group(REDUCESCATTER, "reducescatter", tensors, name, process_set, reduction)
