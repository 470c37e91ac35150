"""Bringing parameters and objects to the same state on all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from typing import Any

from horovod._core import objects
from horovod._core.basics import basics

from ._arrays import is_on_host, settle
from ._framework import mx
from .mpi_ops import broadcast_

_DeferredInitializationError = mx.gluon.parameter.DeferredInitializationError


def broadcast_object(obj: Any, root_rank: int = 0, name: str | None = None) -> Any:
    """Return the object of the root rank on every rank; pickled by cloudpickle.

    Arguments:
        obj: anything that cloudpickle can pickle.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the call by; without one they match by order.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    return objects.broadcast_object(obj, root_rank, name)


def allgather_object(obj: Any, name: str | None = None) -> list[Any]:
    """Return the objects of all ranks in rank order; pickled by cloudpickle.

    Arguments:
        obj: anything that cloudpickle can pickle.
        name: what ranks match the call by; without one they match by order.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    return objects.allgather_object(obj, name)


def _spread(parameter: Any, root_rank: int, name: str) -> None:
    """Give a parameter the values of the root, in all of its contexts."""
    copies = parameter.list_data()
    broadcast_(copies[0], root_rank, name).wait_to_read()
    for other in copies[1:]:
        copies[0].copyto(other)


def _spread_after_initialization(parameter: Any, root_rank: int, name: str) -> None:
    """Broadcast a parameter as soon as it gets its values, which is in the first forward pass."""
    initialize = parameter._init_impl  # noqa: SLF001 - the only place where values come to be

    @wraps(initialize)
    def initialize_and_spread(*arguments: Any, **options: Any) -> None:
        initialize(*arguments, **options)
        parameter._init_impl = initialize  # noqa: SLF001 - once: later ones are the program's
        _spread(parameter, root_rank, name)

    parameter._init_impl = initialize_and_spread  # noqa: SLF001 - see above


def _arrays_of(value: Any) -> list[Any] | None:
    """Return the arrays of a parameter, the first of which is broadcast; None: it has none yet."""
    if isinstance(value, mx.nd.NDArray):
        return [value]
    try:
        return list(value.list_data())
    except _DeferredInitializationError:
        return None


def broadcast_parameters(params: Any, root_rank: int = 0, prefix: str | None = None) -> None:
    """Overwrite parameters with those of the root rank.

    Takes the dict of arrays of Module.get_params, or the ParameterDict of Block.collect_params (or a dict of
    such parameters). Parameters without values, since their shapes are not known yet, are broadcast
    when they get some. `prefix` keeps the names of several calls apart.

    Arguments:
        params: a dict, or the ParameterDict of a gluon block.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        prefix: what the names of the operations begin with, to tell several models apart.

    Raises:
        ValueError: `params` are neither a dict nor a ParameterDict.

    """
    if prefix is not None and not isinstance(prefix, str):
        message = f"broadcast_parameters: prefix must be a string, got {type(prefix).__name__}"
        raise AssertionError(message)
    if not isinstance(params, (Mapping, mx.gluon.parameter.ParameterDict)):
        message = f"broadcast_parameters: expected a dict or a ParameterDict, got {type(params).__name__}"
        raise ValueError(message)  # noqa: TRY004 - type of the public API
    if basics.size() == 1:
        return
    pushed = []
    for key, value in sorted(params.items(), key=lambda item: str(item[0])):
        name = f"{prefix or ''}{key}"
        arrays = _arrays_of(value)
        if arrays is None:
            _spread_after_initialization(value, root_rank, name)
            continue
        if is_on_host(arrays[0]):  # what has run may have left it in a layout that only MXNet knows
            settle(arrays[0])
        pushed.append((broadcast_(arrays[0], root_rank, name), arrays[1:]))
    for array, copies in pushed:
        array.wait_to_read()
        for other in copies:
            array.copyto(other)
