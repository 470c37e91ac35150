"""allreduce and reducescatter as users call them: sparse tensors, compression, the parameter `average`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from horovod._core.codes import NO_WIRE_DTYPE
from horovod._core.process_sets import ProcessSet, global_process_set

from .compression import Compression, wire_dtype
from .mpi_ops import (
    Adasum,
    Average,
    Sum,
    _allreduce,
    _grouped_allreduce,
    _grouped_reducescatter,
    _reducescatter,
    allgather,
    handle_average_backwards_compatibility,
    set_size,
)


def _check_sparse(op: int, prescale_factor: float, postscale_factor: float) -> None:
    if op == Adasum:
        message = (
            "allreduce: Adasum does not work with tf.IndexedSlices; pass sparse_as_dense=True to "
            "DistributedOptimizer or DistributedGradientTape"
        )
        raise NotImplementedError(message)
    if op not in (Average, Sum):
        message = f"allreduce: tf.IndexedSlices can be combined by Average and Sum only, got op={op}"
        raise NotImplementedError(message)
    if prescale_factor != 1.0 or postscale_factor != 1.0:
        message = (
            "allreduce: prescale_factor and postscale_factor do not work with tf.IndexedSlices, got "
            f"{prescale_factor} and {postscale_factor}"
        )
        raise NotImplementedError(message)


def _sparse_result(slices: Any, values: Any, indices: Any, op: int, process_set: ProcessSet) -> Any:
    if op == Average:
        values /= set_size(process_set, values.dtype)
    return tf.IndexedSlices(values, indices, dense_shape=slices.dense_shape)


def _allreduce_sparse(
    slices: Any, op: int, name: str | None, ignore_name_scope: bool, process_set: ProcessSet
) -> Any:
    """Add rows by gathering them: whoever applies the result adds those with equal indices."""
    values = allgather(slices.values, name and f"{name}_values", ignore_name_scope, process_set=process_set)
    indices = allgather(
        slices.indices, name and f"{name}_indices", ignore_name_scope, process_set=process_set
    )
    return _sparse_result(slices, values, indices, op, process_set)


def allreduce(
    tensor: Any,
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
) -> Any:
    """Combine a tensor, or tf.IndexedSlices, of every rank: average unless `op` says otherwise.

    Ranks match by `name`, or by order if there is none. The result is
    postscale_factor * op(prescale_factor * tensor). It can be differentiated.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        device_dense: where TensorFlow places operations on dense tensors, e.g. "/cpu:0".
        device_sparse: where TensorFlow places operations on tf.IndexedSlices.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.
        ignore_name_scope: leave the name scope out of the name that ranks match by.

    Raises:
        ValueError: arguments that are refused before anything is sent.
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    op = handle_average_backwards_compatibility(op, average)
    if isinstance(tensor, tf.IndexedSlices):
        _check_sparse(op, prescale_factor, postscale_factor)
        with tf.device(device_sparse):
            return _allreduce_sparse(tensor, op, name, ignore_name_scope, process_set)
    with tf.device(device_dense):
        tensor = tf.convert_to_tensor(tensor)
        wire = wire_dtype(compression, tensor.dtype, op)
        sent, context = (tensor, None) if wire is not None else compression.compress(tensor)
        reduced = _allreduce(
            sent,
            name=name,
            op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            ignore_name_scope=ignore_name_scope,
            process_set=process_set,
            wire_dtype=NO_WIRE_DTYPE if wire is None else wire,
        )
        return reduced if wire is not None else compression.decompress(reduced, context)


def _reduce_dense_group(
    tensors: Sequence[Any],
    compression: Any,
    name: str | None,
    reduction: dict[str, Any],
) -> list[Any]:
    """Reduce dense tensors, those of one dtype as one operation each."""
    converted = [tf.convert_to_tensor(tensor) for tensor in tensors]
    by_dtype: dict[Any, list[int]] = {}
    for index, tensor in enumerate(converted):
        by_dtype.setdefault(tensor.dtype, []).append(index)
    results: list[Any] = [None] * len(converted)
    for dtype, indices in by_dtype.items():
        wire = wire_dtype(compression, dtype, reduction["op"])
        members = [converted[index] for index in indices]
        pairs = [(m, None) if wire is not None else compression.compress(m) for m in members]
        label = name if len(by_dtype) == 1 or name is None else f"{name}_{dtype.name}"
        reduced = _grouped_allreduce(
            [sent for sent, _ in pairs],
            name=label,
            wire_dtype=NO_WIRE_DTYPE if wire is None else wire,
            **reduction,
        )
        for index, tensor, (_, context) in zip(indices, reduced, pairs, strict=True):
            results[index] = tensor if wire is not None else compression.decompress(tensor, context)
    return results


def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    name: str | None = None,
) -> Any:
    """Combine several tensors as one operation, all or nothing; tf.IndexedSlices may be among them.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allreduce.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        device_dense: where TensorFlow places operations on dense tensors, e.g. "/cpu:0".
        device_sparse: where TensorFlow places operations on tf.IndexedSlices.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.
        ignore_name_scope: leave the name scope out of the name that ranks match by.
        name: what ranks match the operation by; without one they match by order.

    Raises:
        ValueError: arguments that are refused before anything is sent.
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    if not tensors:
        return tensors
    op = handle_average_backwards_compatibility(op, average)
    sparse = [i for i, tensor in enumerate(tensors) if isinstance(tensor, tf.IndexedSlices)]
    dense = [i for i, tensor in enumerate(tensors) if not isinstance(tensor, tf.IndexedSlices)]
    results: list[Any] = [None] * len(tensors)
    if sparse:
        _check_sparse(op, prescale_factor, postscale_factor)
        with tf.device(device_sparse):
            for index in sparse:
                label = name and f"{name}_sparse_{index}"
                results[index] = _allreduce_sparse(tensors[index], op, label, ignore_name_scope, process_set)
    if dense:
        reduction = {
            "op": op,
            "prescale_factor": prescale_factor,
            "postscale_factor": postscale_factor,
            "ignore_name_scope": ignore_name_scope,
            "process_set": process_set,
        }
        with tf.device(device_dense):
            reduced = _reduce_dense_group([tensors[i] for i in dense], compression, name, reduction)
        for index, tensor in zip(dense, reduced, strict=True):
            results[index] = tensor
    return results


def reducescatter(
    tensor: Any,
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    ignore_name_scope: bool = False,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Combine a tensor of every rank, and return this rank's rows of the result.

    Where the rows do not divide, the first ranks get one more.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks. Needs at least one
            dimension.
        device_dense: where TensorFlow places operations on dense tensors, e.g. "/cpu:0".
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average or Sum.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.
        ignore_name_scope: leave the name scope out of the name that ranks match by.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.

    Raises:
        ValueError: arguments that are refused before anything is sent.
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    with tf.device(device_dense):
        sent, context = compression.compress(tf.convert_to_tensor(tensor))
        reduced = _reducescatter(
            sent,
            name=name,
            op=op,
            ignore_name_scope=ignore_name_scope,
            process_set=process_set,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )
        return compression.decompress(reduced, context)


def grouped_reducescatter(
    tensors: Sequence[Any],
    device_dense: str = "",
    compression: Any = Compression.none,
    op: int = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> Any:
    """Combine several tensors of one dtype as one operation, and return this rank's rows of each.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of reducescatter.
        device_dense: where TensorFlow places operations on dense tensors, e.g. "/cpu:0".
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average or Sum.
        process_set: the ranks that take part, all of which must call this.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.

    Raises:
        ValueError: arguments that are refused before anything is sent.
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    if not tensors:
        return tensors
    with tf.device(device_dense):
        pairs = [compression.compress(tf.convert_to_tensor(tensor)) for tensor in tensors]
        reduced = _grouped_reducescatter(
            [sent for sent, _ in pairs],
            op=op,
            process_set=process_set,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )
        return [
            compression.decompress(tensor, context)
            for tensor, (_, context) in zip(reduced, pairs, strict=True)
        ]


__all__ = [
    "allreduce",
    "grouped_allreduce",
    "grouped_reducescatter",
    "reducescatter",
]
