"""Gradients of the ops; registered with TensorFlow when this module is imported.

Their names are those of the original, where programs find them in mpi_ops: to call them, or to give them
other code. What is registered are therefore these functions, of the parameters that they have there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from horovod._core.process_sets import ProcessSet

from .mpi_ops import (
    Average,
    Sum,
    _allreduce,
    _grouped_allreduce,
    allgather,
    alltoall,
    grouped_allgather,
    rank_op,
    set_size,
)


def _set_of(op: Any) -> ProcessSet:
    return ProcessSet.with_id(op.get_attr("process_set_id"))


def _reduction_of(op: Any) -> dict[str, Any]:
    return {
        "op": op.get_attr("reduce_op"),
        "prescale_factor": op.get_attr("prescale_factor"),
        "postscale_factor": op.get_attr("postscale_factor"),
        "ignore_name_scope": op.get_attr("ignore_name_scope"),
        "process_set": _set_of(op),
        "wire_dtype": op.get_attr("wire_dtype"),
    }


def _fitting(op: Any, grad: Any, index: int = 0) -> Any:
    """Return the gradient of an output in the dtype of its input, which is that of the output, too.

    It may come in another one: from a program, or from TensorFlow itself, which hands in zeros of float32
    for outputs of a group that nobody used.
    """
    return tf.cast(tf.convert_to_tensor(grad), op.inputs[index].dtype)


def _all_fitting(op: Any, grads: Sequence[Any]) -> list[Any]:
    return [_fitting(op, grad, index) for index, grad in enumerate(grads)]


def _allreduce_grad(op: Any, grad: Any) -> Any:
    return _allreduce(_fitting(op, grad), **_reduction_of(op))


def _grouped_allreduce_grad(op: Any, *grads: Any) -> list[Any]:
    return _grouped_allreduce(_all_fitting(op, grads), **_reduction_of(op))


def _own_rows(op: Any, tensor: Any, grad: Any) -> Any:
    """Average the gradients of a gathered tensor, and return the part that came from this rank."""
    process_set = _set_of(op)
    scope = op.get_attr("ignore_name_scope")
    summed = _allreduce(grad, op=Average, ignore_name_scope=scope, process_set=process_set)
    with tf.device("/cpu:0"):
        rows = tf.reshape(tf.shape(tensor)[0], [1])
        all_rows = allgather(rows, ignore_name_scope=scope, process_set=process_set)
        mine = process_set.rank()
        start = tf.reduce_sum(all_rows[:mine])
    return summed[start : start + all_rows[mine]]


def _allgather_grad(op: Any, grad: Any) -> Any:
    return _own_rows(op, op.inputs[0], _fitting(op, grad))


def _grouped_allgather_grad(op: Any, *grads: Any) -> list[Any]:
    fitting = _all_fitting(op, grads)
    return [_own_rows(op, tensor, grad) for tensor, grad in zip(op.inputs, fitting, strict=True)]


def _broadcast_grad(op: Any, grad: Any) -> Any:
    reduced = _allreduce(
        _fitting(op, grad),
        op=Average,
        ignore_name_scope=op.get_attr("ignore_name_scope"),
        process_set=_set_of(op),
    )
    # Asked when the graph runs: TensorFlow would turn a product with a constant 0 into zeros, and drop the
    # allreduce that the root waits for.
    return tf.where(tf.equal(rank_op(), op.get_attr("root_rank")), reduced, tf.zeros_like(reduced))


def _alltoall_grad(op: Any, grad_wrt_output: Any, grad_wrt_received_splits: Any) -> list[Any]:
    del grad_wrt_received_splits
    back, _ = alltoall(
        _fitting(op, grad_wrt_output),
        splits=op.outputs[1],
        ignore_name_scope=op.get_attr("ignore_name_scope"),
        process_set=_set_of(op),
    )
    return [back, None]


def _scaled_for_gather(op: Any, grad: Any) -> Any:
    factor = op.get_attr("prescale_factor") * op.get_attr("postscale_factor")
    if factor != 1.0:
        grad *= tf.cast(factor, grad.dtype)
    if op.get_attr("reduce_op") == Sum:
        grad *= set_size(_set_of(op), grad.dtype)
    return grad


def _reducescatter_grad(op: Any, grad: Any) -> Any:
    return allgather(
        _scaled_for_gather(op, _fitting(op, grad)),
        ignore_name_scope=op.get_attr("ignore_name_scope"),
        process_set=_set_of(op),
    )


def _grouped_reducescatter_grad(op: Any, *grads: Any) -> list[Any]:
    return grouped_allgather(
        [_scaled_for_gather(op, grad) for grad in _all_fitting(op, grads)],
        ignore_name_scope=op.get_attr("ignore_name_scope"),
        process_set=_set_of(op),
    )


tf.RegisterGradient("HorovodAllreduce")(_allreduce_grad)
tf.RegisterGradient("HorovodGroupedAllreduce")(_grouped_allreduce_grad)
tf.RegisterGradient("HorovodAllgather")(_allgather_grad)
tf.RegisterGradient("HorovodGroupedAllgather")(_grouped_allgather_grad)
tf.RegisterGradient("HorovodBroadcast")(_broadcast_grad)
tf.RegisterGradient("HorovodAlltoall")(_alltoall_grad)
tf.RegisterGradient("HorovodReducescatter")(_reducescatter_grad)
tf.RegisterGradient("HorovodGroupedReducescatter")(_grouped_reducescatter_grad)
for _op in ("Join", "Barrier", "Size", "ProcessSetIncluded", "LocalSize", "Rank", "LocalRank"):
    tf.no_gradient(f"Horovod{_op}")
