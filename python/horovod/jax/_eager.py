"""Operations outside of jit that need no program.

Their results have sizes that only the ranks together know, or they are broadcasts of many arrays. The core
reads the memory of the array; a result that it allocates becomes an array without a copy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from horovod._core import _native, codes
from horovod._core import submit as core
from horovod._core.errors import HorovodInternalError
from horovod._core.process_sets import ProcessSet
from horovod._core.submit import TensorView

from ._checks import members

_CODES = {
    "bool": codes.BOOL,
    "uint8": codes.UINT8,
    "int8": codes.INT8,
    "uint16": codes.UINT16,
    "int16": codes.INT16,
    "int32": codes.INT32,
    "int64": codes.INT64,
    "uint32": codes.INT32,  # the same bytes
    "uint64": codes.INT64,
    "float16": codes.FLOAT16,
    "bfloat16": codes.BFLOAT16,
    "float32": codes.FLOAT32,
    "float64": codes.FLOAT64,
}


def _view(operation: str, array: Any) -> TensorView:
    host = np.asarray(array)  # of a CPU array: its memory
    if not host.flags.c_contiguous:
        host = np.ascontiguousarray(host)
    name = host.dtype.name
    # Others of one byte per number (int4) are fewer bits in JAX: only a broadcast, which returns the same
    # bytes, has no need to know.
    is_bytes = name.startswith("float8") or (operation == "broadcast" and host.dtype.itemsize == 1)
    code = _CODES.get(name, codes.UINT8 if is_bytes else None)
    if code is None:
        message = f"{operation}: arrays of {name} are not supported; convert them first"
        raise TypeError(message)
    return TensorView(host.ctypes.data, code, host.shape, (array, host))


def _taken(handle: int, index: int, like: Any) -> Any:
    made = jax.dlpack.from_dlpack(_Taken(_native.take_output(handle, index)))
    if made.dtype == like.dtype:
        return made
    return jax.lax.bitcast_convert_type(made, like.dtype)


class _Taken:
    """A capsule of the core, as from_dlpack wants it."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@contextlib.contextmanager
def _waited(handle: int) -> Any:
    try:
        _native.wait(handle, None)
        yield
    finally:
        _forget(handle)


def _forget(handle: int) -> None:
    # A core that has been shut down has released everything itself.
    with contextlib.suppress(HorovodInternalError, ValueError):
        _native.release(handle)


def allgather(arrays: Sequence[Any], name: str | None, process_set: ProcessSet) -> list[Any]:
    """Gather arrays whose numbers of rows may differ between ranks."""
    views = [_view("allgather", array) for array in arrays]
    if len(views) == 1:
        handle = core.allgather(views[0], name, process_set)
    else:
        outputs = [core.CORE_ALLOCATES] * len(views)
        handle = core.group(codes.ALLGATHER, "allgather", views, outputs, name, process_set)
    with _waited(handle):
        return [_taken(handle, index, array) for index, array in enumerate(arrays)]


def broadcast(
    arrays: Sequence[Any], root_rank: int, names: Sequence[str | None], process_set: ProcessSet
) -> list[Any]:
    """Send arrays of the root, all of them under way at once."""
    members("broadcast", process_set)
    views = [_view("broadcast", array) for array in arrays]
    outputs = [np.empty(array.shape, array.dtype) for array in arrays]
    handles: list[int] = []
    try:
        for view, output, name in zip(views, outputs, names, strict=True):
            kept = view._replace(owner=(view.owner, output))
            handles.append(core.broadcast(kept, output.ctypes.data, root_rank, name, process_set))
        _native.wait_many(handles, None)
    finally:
        for handle in handles:
            _forget(handle)
    return [jnp.asarray(output) for output in outputs]


def alltoall(array: Any, splits: Any, name: str | None, process_set: ProcessSet) -> tuple[Any, Any]:
    """Exchange rows; returns the output and how many rows came from each rank."""
    rows = None if splits is None else [int(count) for count in np.asarray(splits).reshape(-1)]
    if splits is not None and np.ndim(splits) != 1:
        message = f"alltoall: expected splits with one dimension, got {np.ndim(splits)}"
        raise ValueError(message)
    handle = core.alltoall(_view("alltoall", array), rows, name, process_set)
    with _waited(handle):
        received = jnp.asarray(_native.received_splits(handle), jnp.int32)
        return _taken(handle, 0, array), received
