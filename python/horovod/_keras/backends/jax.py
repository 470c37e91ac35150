"""Keras on JAX: the operations of horovod.jax, inside the compiled step and outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp

import horovod.jax as hvd
from horovod._core.codes import AVERAGE
from horovod._core.gradients import form_groups, scale_factors
from horovod._keras._options import OptimizerOptions, Reducer

from ._eager import in_graph, read_variable, write_variable

Compression = hvd.Compression


def make_reducer(options: OptimizerOptions) -> Reducer:
    """Return a function that reduces gradients, also while a step is traced; at once or in groups."""
    prescale, postscale = scale_factors(
        average=options.op == AVERAGE, predivide_factor=options.gradient_predivide_factor
    )

    def reduce(gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        if not options.process_set.included() or (options.process_set.size() or 1) <= 1:
            return list(gradients)
        results: list[Any] = [None] * len(gradients)
        for number, members in enumerate(_groups(options.groups, variables)):
            reduced = hvd.grouped_allreduce(
                [gradients[index] for index in members],
                name=f"{options.name}.grad_{number}",
                compression=options.compression or Compression.none,
                op=options.op,
                prescale_factor=prescale,
                postscale_factor=postscale,
                process_set=options.process_set,
            )
            for index, gradient in zip(members, reduced, strict=True):
                results[index] = gradient
        return results

    return reduce


def _groups(groups: Any, variables: Sequence[Any]) -> list[list[int]]:
    positions = list(range(len(variables)))
    if groups is None:
        return [positions]
    if isinstance(groups, int):
        return form_groups(positions, groups, key=lambda position: position)
    place = {id(variable): position for position, variable in enumerate(variables)}
    listed = [[place[id(variable)] for variable in group if id(variable) in place] for group in groups]
    return form_groups(positions, listed, key=lambda position: position)


def allreduce(value: Any, name: str | None, **reduction: Any) -> Any:
    """See horovod.keras.allreduce."""
    reduction["compression"] = reduction["compression"] or Compression.none
    return hvd.allreduce(value, name=name, **reduction)


def allgather(value: Any, name: str | None) -> Any:
    """See horovod.keras.allgather."""
    return hvd.allgather(value, name=name)


def broadcast(value: Any, root_rank: int, name: str | None) -> Any:
    """See horovod.keras.broadcast."""
    return hvd.broadcast(value, root_rank, name=name)


def reducescatter(value: Any, name: str | None, op: int) -> Any:
    """See horovod.keras.reducescatter."""
    return hvd.reducescatter(value, op, name=name)


def broadcast_variables(variables: Iterable[Any], root_rank: int) -> None:
    """Overwrite variables with those of the root."""
    listed = list(variables)
    values = hvd.broadcast([jnp.asarray(variable) for variable in listed], root_rank)
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
