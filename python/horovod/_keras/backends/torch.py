"""Keras on PyTorch: the operations of horovod.torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

import horovod.torch as hvd
from horovod._core.gradients import form_groups, scale_factors
from horovod._keras._options import OptimizerOptions, Reducer

from ._eager import in_graph, read_variable, write_variable

Compression = hvd.Compression


def make_reducer(options: OptimizerOptions) -> Reducer:
    """Return a function that reduces gradients, all of them under way at once."""
    prescale, postscale = scale_factors(
        average=options.op == hvd.Average, predivide_factor=options.gradient_predivide_factor
    )
    reduction: dict[str, Any] = {
        "op": options.op,
        "prescale_factor": prescale,
        "postscale_factor": postscale,
        "process_set": options.process_set,
    }
    compression = options.compression or Compression.none

    def reduce(gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        if not options.process_set.included() or (options.process_set.size() or 1) <= 1:
            return list(gradients)
        packed = [compression.compress(gradient.detach().contiguous()) for gradient in gradients]
        tensors = [tensor for tensor, _ in packed]
        handles = []
        for number, members in enumerate(_groups(options.groups, variables)):
            name = f"{options.name}.grad_{number}"
            if options.groups is None:
                handles.append(hvd.allreduce_async(tensors[members[0]], name=name, **reduction))
            else:
                chosen = [tensors[index] for index in members]
                handles.append(hvd.grouped_allreduce_async(chosen, name=name, **reduction))
        results: list[Any] = [None] * len(tensors)
        for members, handle in zip(_groups(options.groups, variables), handles, strict=True):
            reduced = hvd.synchronize(handle)
            for index, tensor in zip(members, [reduced] if options.groups is None else reduced, strict=True):
                results[index] = compression.decompress(tensor, packed[index][1])
        return results

    return reduce


def _groups(groups: Any, variables: Sequence[Any]) -> list[list[int]]:
    positions = list(range(len(variables)))
    if groups is None:
        return [[position] for position in positions]
    if isinstance(groups, int):
        return form_groups(positions, groups, key=lambda position: position)
    place = {id(variable): position for position, variable in enumerate(variables)}
    listed = [[place[id(variable)] for variable in group if id(variable) in place] for group in groups]
    return form_groups(positions, listed, key=lambda position: position)


def _tensor(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)


def allreduce(value: Any, name: str | None, **reduction: Any) -> Any:
    """See horovod.keras.allreduce."""
    return hvd.allreduce(_tensor(value), name=name, **reduction)


def allgather(value: Any, name: str | None) -> Any:
    """See horovod.keras.allgather."""
    return hvd.allgather(_tensor(value), name=name)


def broadcast(value: Any, root_rank: int, name: str | None) -> Any:
    """See horovod.keras.broadcast."""
    return hvd.broadcast(_tensor(value), root_rank, name=name)


def reducescatter(value: Any, name: str | None, op: int) -> Any:
    """See horovod.keras.reducescatter."""
    return hvd.reducescatter(_tensor(value), op=op, name=name)


def broadcast_variables(variables: Iterable[Any], root_rank: int) -> None:
    """Overwrite variables with those of the root."""
    for variable in variables:
        source = variable.value if hasattr(variable, "value") else variable
        value = hvd.broadcast(source.detach(), root_rank)
        if hasattr(variable, "assign"):
            variable.assign(value)
        else:
            with torch.no_grad():
                variable.copy_(value)


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
