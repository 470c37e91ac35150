"""Keras on JAX: a host callback, on numpy arrays.

All gradients of a step are in one callback: the order of callbacks is then no matter, and the
operations of a step are under way at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import io_callback

from horovod._core.codes import AVERAGE, BFLOAT16, FLOAT16, NO_WIRE_DTYPE
from horovod._core.gradients import scale_factors
from horovod._core.submit import Reduction
from horovod._keras import _arrays
from horovod._keras._options import OptimizerOptions, Reducer

from ._eager import in_graph, read_variable, write_variable


class Compression:
    """The ways gradients can travel: as they are, as float16, as bfloat16."""

    none = NO_WIRE_DTYPE
    fp16 = FLOAT16
    bf16 = BFLOAT16


def _wire(compression: Any, array: Any) -> int:
    wanted = NO_WIRE_DTYPE if compression is None else int(compression)
    return wanted if array.dtype == np.float32 else NO_WIRE_DTYPE


def make_reducer(options: OptimizerOptions) -> Reducer:
    """Return a function that reduces gradients, also while a step is traced."""
    prescale, postscale = scale_factors(
        average=options.op == AVERAGE, predivide_factor=options.gradient_predivide_factor
    )

    def on_host(*gradients: Any) -> list[Any]:
        arrays = [np.asarray(gradient) for gradient in gradients]
        names = [f"{options.name}.grad_{number}" for number in range(len(arrays))]
        by_wire: dict[int, list[int]] = {}
        for index, array in enumerate(arrays):
            by_wire.setdefault(_wire(options.compression, array), []).append(index)
        results: list[Any] = [None] * len(arrays)
        for wire, members in by_wire.items():
            reduced = _arrays.allreduce(
                [arrays[index] for index in members],
                [names[index] for index in members],
                Reduction(options.op, prescale, postscale, wire),
                options.process_set,
            )
            for index, array in zip(members, reduced, strict=True):
                results[index] = array
        return results

    def reduce(gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        del variables
        if not options.process_set.included() or (options.process_set.size() or 1) <= 1:
            return list(gradients)
        shapes = [jax.ShapeDtypeStruct(gradient.shape, gradient.dtype) for gradient in gradients]
        return list(io_callback(on_host, shapes, *gradients))

    return reduce


def allreduce(value: Any, name: str | None, **reduction: Any) -> Any:
    """See horovod.keras.allreduce."""
    array = np.asarray(value)
    how = Reduction(
        reduction["op"],
        reduction["prescale_factor"],
        reduction["postscale_factor"],
        _wire(reduction["compression"], array),
    )
    return _arrays.allreduce([array], [name], how)[0]


def allgather(value: Any, name: str | None) -> Any:
    """See horovod.keras.allgather."""
    return _arrays.allgather(np.asarray(value), name)


def broadcast(value: Any, root_rank: int, name: str | None) -> Any:
    """See horovod.keras.broadcast."""
    del name
    return _arrays.broadcast([np.asarray(value)], root_rank)[0]


def reducescatter(value: Any, name: str | None, op: int) -> Any:
    """See horovod.keras.reducescatter."""
    return _arrays.reducescatter(np.asarray(value), name, Reduction(op))


def broadcast_variables(variables: Iterable[Any], root_rank: int) -> None:
    """Overwrite variables with those of the root."""
    listed = list(variables)
    values = _arrays.broadcast([np.asarray(variable) for variable in listed], root_rank)
    for variable, value in zip(listed, values, strict=True):
        variable.assign(value)


__all__ = [
    "Compression",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_variables",
    "in_graph",
    "make_reducer",
    "read_variable",
    "reducescatter",
    "write_variable",
]
