"""Operations that MXNet's engine runs: when their arrays are ready, in the order of its dependencies.

They have names always: the engine is free to run them in another order on every rank, so that order cannot
match them.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from horovod._core.codes import NO_WIRE_DTYPE, SUM
from horovod._core.names import group_names, operation_name
from horovod._core.process_sets import ProcessSet, registered_id

from ._errors import ArgumentError
from ._framework import mx
from ._library import Operation, push

_NUMBERS: Final = 64
"""Numbers of unnamed operations, given out again and again: the ranks then know what they agreed on.

An operation waits until the last one of its number is complete (src/bindings/mxnet/call.h), so that as many
may be under way at a time.
"""

_SMALL: Final = 1024
"""Elements of an array that is agreed on in less time than a change of threads takes."""

_unnamed: dict[tuple[str, int], Callable[[], int]] = {}
"""Of each kind of operation and process set, the number of the next one that has no name."""


class Asked(NamedTuple):
    """What an operation is asked for, beside its tensors."""

    kind: int
    operation: str
    name: str | None
    priority: int
    process_set: ProcessSet
    op: int = SUM
    prescale: float = 1.0
    postscale: float = 1.0
    wire_dtype: int = NO_WIRE_DTYPE
    root_rank: int = 0


def forget_numbers() -> None:
    """Count unnamed operations from 0 again: for a job that begins anew."""
    _unnamed.clear()


def _named(asked: Asked, process_set_id: int) -> str:
    if asked.name is not None:
        return asked.name
    # By set: ranks outside of it do not count its operations.
    key = (asked.operation, process_set_id)
    counter = _unnamed.get(key)
    if counter is None:
        counter = _unnamed.setdefault(key, itertools.count().__next__)
    return f"noname.{counter() % _NUMBERS}"


def _is_direct(asked: Asked, tensor: Any) -> bool:
    """Return whether the caller begins the operation if the array is ready, and gives it a moment to end.

    Two changes of threads are saved, which take longer than a small operation. What has a priority is for the
    engine's queue of priorities, and what is large is worth a thread of its own.
    """
    return asked.priority == 0 and tensor.size <= _SMALL


def _set_id(asked: Asked) -> int:
    try:
        return registered_id(asked.process_set)
    except ValueError as error:
        raise ArgumentError(str(error)) from error


def _push(
    asked: Asked,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    names: Any,
    process_set_id: int,
    *,
    is_group: bool,
) -> None:
    count = len(inputs)
    request = Operation(
        asked.kind,
        asked.op,
        asked.wire_dtype,
        process_set_id,
        asked.root_rank,
        asked.priority,
        int(is_group),
        count,
        int(_is_direct(asked, inputs[0]) and not is_group),
        0,
        asked.prescale,
        asked.postscale,
    )
    handles = ctypes.c_void_p * count
    problem = push(
        ctypes.byref(request),
        handles(*[tensor.handle.value for tensor in inputs]),
        handles(*[tensor.handle.value for tensor in outputs]),
        (ctypes.c_char_p * count)(*[name.encode() for name in names]),
    )
    if problem is not None:
        raise mx.base.MXNetError(problem.decode())


def push_one(asked: Asked, tensor: Any, output: Any) -> None:
    """Push an operation on one tensor; in place if the output is the tensor."""
    process_set_id = _set_id(asked)
    name = operation_name(asked.operation, _named(asked, process_set_id))
    _push(asked, (tensor,), (output,), (name,), process_set_id, is_group=False)


def push_group(asked: Asked, tensors: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Push several tensors as one operation: all or nothing."""
    process_set_id = _set_id(asked)
    name = _named(asked._replace(operation=f"grouped_{asked.operation}"), process_set_id)
    names = group_names(asked.operation, name, len(tensors))
    _push(asked, tensors, outputs, names, process_set_id, is_group=True)
