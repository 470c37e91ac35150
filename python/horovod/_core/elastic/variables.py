"""State whose bulk is numpy arrays: variables of TensorFlow and Keras, leaves of JAX.

Copies lie in memory that is kept from one commit to the next; ranks exchange the copies themselves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from horovod._core import _native, codes
from horovod._core.errors import HorovodInternalError
from horovod._core.objects import broadcast_object

from .state import ObjectState

_CODES = {
    "uint8": codes.UINT8,
    "int8": codes.INT8,
    "uint16": codes.UINT16,
    "int16": codes.INT16,
    "uint32": codes.INT32,  # a broadcast moves bits
    "int32": codes.INT32,
    "uint64": codes.INT64,
    "int64": codes.INT64,
    "float16": codes.FLOAT16,
    "float32": codes.FLOAT32,
    "float64": codes.FLOAT64,
    "bool": codes.BOOL,
    "bfloat16": codes.BFLOAT16,
    "complex64": codes.INT64,
}


def copy_arrays(mine: Sequence[Any] | None, given: Sequence[Any]) -> list[Any]:
    """Copy arrays into those of an earlier copy where these fit."""
    arrays = [np.asarray(array) for array in given]
    kept: Sequence[Any] = mine if mine is not None and len(mine) == len(arrays) else [None] * len(arrays)
    copies = []
    for old, array in zip(kept, arrays, strict=True):
        if old is None or old.shape != array.shape or old.dtype != array.dtype:
            copies.append(np.array(array, order="C", copy=True))
        else:
            np.copyto(old, array)
            copies.append(old)
    return copies


def own_copy(array: Any) -> Any:
    """Return what may be given away: frameworks take over the memory of an array if its place suits them.

    A variable that was set to the copy of a commit itself would then change that copy in its next step.
    """
    return np.array(array, order="C", copy=True)


def optimizer_variables(optimizer: Any) -> list[Any]:
    """Return all variables of an optimizer of Keras; Keras 2 does not count the learning rate among them."""
    if optimizer is None:
        return []
    found = optimizer.variables
    variables = list(found() if callable(found) else found)
    rate = getattr(optimizer, "learning_rate", None)
    if hasattr(rate, "assign") and not any(variable is rate for variable in variables):
        variables.append(rate)
    return variables


def broadcast_arrays(arrays: Sequence[Any], root: int) -> list[Any]:
    """Return the arrays of the root, which other ranks need not know the number and forms of."""
    is_root = _native.rank() == root
    forms = broadcast_object(
        [(array.shape, array.dtype.name) for array in arrays] if is_root else None, root, "elastic.forms"
    )
    received = list(arrays) if is_root else [np.empty(shape, _dtype(name)) for shape, name in forms]
    handles = [_submit(array, f"elastic.array.{i}", root) for i, array in enumerate(received) if array.size]
    try:
        _native.wait_many(handles, None)
    finally:
        for handle in handles:
            with contextlib.suppress(HorovodInternalError, ValueError):
                _native.release(handle)
    return received


def _dtype(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # type: ignore[import-not-found]  # noqa: PLC0415 - comes with JAX and TensorFlow

        return np.dtype(getattr(ml_dtypes, name))


def _submit(array: Any, name: str, root: int) -> int:
    code = _CODES.get(array.dtype.name)
    data = array if code is not None else array.view(np.uint8)
    return _native.submit(
        kind=codes.BROADCAST,
        dtype=codes.UINT8 if code is None else code,
        process_set=codes.GLOBAL_PROCESS_SET,
        root_rank=root,
        shape=data.shape,
        input=data.ctypes.data,
        output=data.ctypes.data,
        name=name,
        owner=array,
    )


class VariablesState(ObjectState):
    """An ObjectState with variables. A subclass says how they are read and written."""

    _saved_arrays: list[Any] | None = None

    def save(self) -> None:
        """Copy the variables, and remember the attributes."""
        self._saved_arrays = copy_arrays(self._saved_arrays, self._read())
        super().save()

    def restore(self) -> None:
        """Bring variables and attributes back to the last commit."""
        if self._saved_arrays is not None:
            self._write(self._saved_arrays)
        super().restore()

    def sync(self) -> None:
        """Give every rank the variables and attributes of the newest commit, and keep them as its own."""
        with self._agreement() as agreed:
            if not agreed.is_needed:
                return
            arrays = broadcast_arrays(copy_arrays(None, self._read()), agreed.root)
            received = self._receive_objects(agreed.root)
            # No rank can fail alone from here on: the old copies are replaced as a whole.
            self._write(arrays)
            self._saved_arrays = arrays
            self._take_objects(received)

    def _read(self) -> list[Any]:
        """Return the values of all variables, as numpy arrays or what becomes such."""
        raise NotImplementedError

    def _write(self, arrays: Sequence[Any]) -> None:
        """Set all variables."""
        raise NotImplementedError
