"""Parameters, optimizer states, metrics and objects between ranks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from horovod._core.objects import allgather_object, broadcast_object
from horovod._core.process_sets import ProcessSet, global_process_set

from ._leaves import is_array, is_traced
from .operations import allreduce, broadcast
from .sharded_optimizer import refuse_shards

__all__ = [
    "allgather_object",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "metric_average",
]


def _is_number(leaf: Any) -> bool:
    return is_array(leaf) and not isinstance(leaf, (jax.Array, np.ndarray, np.generic))


def broadcast_parameters(
    params: Any, root_rank: int = 0, process_set: ProcessSet = global_process_set
) -> Any:
    """Return the pytree of the root on every rank: all arrays in one operation.

    Arrays of numpy stay such, Python numbers stay numbers (inside jit both become arrays), and leaves that
    are neither (functions in an Equinox module, strings) are this rank's own. Trees and shapes are the same
    on every rank.

    Arguments:
        params: a pytree of arrays.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    refuse_shards("broadcast", params, "broadcast the parameters alone, and call init after that")
    leaves, tree = jax.tree_util.tree_flatten(params)
    arrays = [index for index, leaf in enumerate(leaves) if is_array(leaf) and not _is_number(leaf)]
    numbers = [index for index, leaf in enumerate(leaves) if _is_number(leaf)]
    if is_traced(leaves):  # all of them become arrays, as all do inside jit
        arrays, numbers = sorted(arrays + numbers), []
    if numbers:
        values = broadcast_object([leaves[index] for index in numbers], root_rank, process_set=process_set)
        for index, value in zip(numbers, values, strict=True):
            leaves[index] = value
    sent = broadcast([leaves[index] for index in arrays], root_rank, process_set=process_set)
    for index, value in zip(arrays, sent, strict=True):
        is_numpy = isinstance(leaves[index], np.ndarray) and not isinstance(value, jax.core.Tracer)
        leaves[index] = np.asarray(value) if is_numpy else value
    return jax.tree_util.tree_unflatten(tree, leaves)


def broadcast_optimizer_state(
    state: Any, root_rank: int = 0, process_set: ProcessSet = global_process_set
) -> Any:
    """Return the state of the root's optimizer on every rank, counters and schedules included.

    Arguments:
        state: that of an optax optimizer, but not of a ShardedOptimizer, of which every
            rank has another part.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    return broadcast_parameters(state, root_rank, process_set)


def metric_average(
    metrics: Any, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Return the metrics of a pytree averaged over the ranks, as Python numbers; in one operation.

    Integers and booleans are averaged as float32. Inside jit the results are arrays.

    Arguments:
        metrics: a pytree of numbers.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        process_set: the ranks that take part, all of which must call this.

    """

    def as_float(value: Any) -> Any:
        array = jnp.asarray(value)
        return array if jnp.issubdtype(array.dtype, jnp.inexact) else array.astype(jnp.float32)

    averaged = allreduce(jax.tree_util.tree_map(as_float, metrics), name=name, process_set=process_set)
    return jax.tree_util.tree_map(_as_number, averaged)


def _as_number(value: Any) -> Any:
    return value if isinstance(value, jax.core.Tracer) or value.ndim else value.item()
