"""Bringing parameters, optimizers and objects to the same state on all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from horovod._core import objects
from horovod._core.process_sets import ProcessSet, global_process_set

from ._broadcast_tensors import broadcast_tensors
from ._optimizer_state import broadcast_optimizer_state

__all__ = [
    "allgather_object",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
]


def _named(params: Any) -> list[tuple[str | None, Any]]:
    if isinstance(params, Mapping):
        return sorted(params.items())
    if isinstance(params, torch.Tensor) or not isinstance(params, Iterable):
        message = (
            f"broadcast_parameters: invalid params of type {type(params)}, expected a dict, or "
            "tensors, or pairs of name and tensor"
        )
        raise ValueError(message)  # noqa: TRY004 - type of the public API
    return [entry if isinstance(entry, tuple) else (None, entry) for entry in params]


def broadcast_parameters(
    params: Any,
    root_rank: int,
    *,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Overwrite parameters with those of the root rank.

    Takes `model.state_dict()`, `model.named_parameters()` or `model.parameters()`.

    Arguments:
        params: model.state_dict(), model.named_parameters() or model.parameters().
        root_rank: the rank whose value counts; a global rank, also in a process set.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: `params` are no tensors.
        HorovodInternalError: a lost rank, or no `init`.

    """
    named = _named(params)
    for name, tensor in named:
        if not isinstance(tensor, torch.Tensor):
            message = f"broadcast_parameters: {name!r} is {type(tensor).__name__}, expected a tensor"
            raise ValueError(message)  # noqa: TRY004 - type of the public API
    broadcast_tensors(named, root_rank, process_set)


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the object of the root rank on every rank; pickled by cloudpickle.

    Arguments:
        obj: anything that cloudpickle can pickle.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the call by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    return objects.broadcast_object(obj, root_rank, name, process_set)


def allgather_object(
    obj: Any,
    name: str | None = None,
    *,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Return the objects of all ranks in rank order; pickled by cloudpickle.

    Arguments:
        obj: anything that cloudpickle can pickle.
        name: what ranks match the call by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    return objects.allgather_object(obj, name, process_set)
