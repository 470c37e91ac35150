"""Collectives on Python objects: a size, then the bytes of the pickle.

Needs no framework: the bytes live in a bytearray. Without a name, ranks are matched by order, so
that objects of different types on different ranks are fine.
"""

from __future__ import annotations

import ctypes
from typing import Any

from . import _native
from .codes import ALLGATHER, BROADCAST, UINT8
from .integers import allgather_integers, broadcast_integer
from .names import operation_name
from .process_sets import ProcessSet, global_process_set, registered_id


def _dumps(obj: object) -> bytearray:
    # Imported late: programs that send no objects need not wait for it.
    import cloudpickle  # type: ignore[import-untyped]  # noqa: PLC0415

    return bytearray(cloudpickle.dumps(obj))


def _loads(data: bytearray | memoryview) -> Any:
    import cloudpickle  # noqa: PLC0415

    return cloudpickle.loads(data)


def _address(data: bytearray) -> int:
    """Where the bytes lie, for as long as the caller neither resizes nor drops them."""
    return ctypes.addressof(ctypes.c_char.from_buffer(data)) if data else 0


def _run(
    kind: int,
    name: str | None,
    process_set: ProcessSet,
    data: bytearray,
    output: bytearray,
    root_rank: int = 0,
) -> None:
    _native.run(
        kind=kind,
        dtype=UINT8,
        process_set=registered_id(process_set),
        root_rank=root_rank,
        shape=(len(data),),
        input=_address(data),
        output=_address(output),
        name=name,
        owner=(data, output),
    )


def _part(operation: str, name: str | None, part: str) -> str | None:
    return operation_name(operation, None if name is None else f"{name}.{part}")


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the object of the root, a global rank, on every rank; the root keeps its own.

    Arguments:
        obj: anything that cloudpickle can pickle.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the call by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    is_root = _native.rank() == root_rank
    data = _dumps(obj) if is_root else bytearray()
    size_name = _part("broadcast", name, "sz")
    size = broadcast_integer(len(data), root_rank, process_set, size_name)
    if not is_root:
        data = bytearray(size)
    _run(BROADCAST, _part("broadcast", name, "t"), process_set, data, data, root_rank)
    return obj if is_root else _loads(data)


def allgather_object(
    obj: Any,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Return the objects of all ranks of the set, in rank order.

    Arguments:
        obj: anything that cloudpickle can pickle.
        name: what ranks match the call by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    data = _dumps(obj)
    sizes = allgather_integers([len(data)], process_set, _part("allgather", name, "sz"))
    gathered = bytearray(sum(size for (size,) in sizes))
    _run(ALLGATHER, _part("allgather", name, "t"), process_set, data, gathered)
    result, start = [], 0
    whole = memoryview(gathered)
    for (size,) in sizes:
        result.append(_loads(whole[start : start + size]))
        start += size
    return result
