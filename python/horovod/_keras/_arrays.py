"""Reductions of numpy arrays, for callbacks; each blocks until it is done."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from horovod._core import _native, codes
from horovod._core.errors import HorovodInternalError
from horovod._core.process_sets import ProcessSet, global_process_set, registered_id
from horovod._core.submit import Reduction

_CODES = {
    "uint8": codes.UINT8,
    "int8": codes.INT8,
    "uint16": codes.UINT16,
    "int16": codes.INT16,
    "int32": codes.INT32,
    "int64": codes.INT64,
    "float16": codes.FLOAT16,
    "float32": codes.FLOAT32,
    "float64": codes.FLOAT64,
    "bool": codes.BOOL,
    "bfloat16": codes.BFLOAT16,
}


def _code(array: Any) -> int:
    code = _CODES.get(array.dtype.name)
    if code is None:
        message = f"arrays of {array.dtype.name} are not supported, expected one of {', '.join(_CODES)}"
        raise ValueError(message)
    return code


def _contiguous(array: Any) -> Any:
    # np.ascontiguousarray would make a scalar one-dimensional.
    given = np.asarray(array)
    return given if given.flags.c_contiguous else given.copy(order="C")


def _wait(handles: Sequence[int]) -> None:
    try:
        _native.wait_many(list(handles), None)
    finally:
        for handle in handles:
            with contextlib.suppress(HorovodInternalError, ValueError):
                _native.release(handle)


def _submit(
    kind: int,
    array: Any,
    output: Any,
    name: str | None,
    process_set: ProcessSet,
    reduction: Reduction,
) -> int:
    return _native.submit(
        kind=kind,
        dtype=_code(array),
        reduce_op=reduction.op,
        process_set=registered_id(process_set),
        wire_dtype=reduction.wire_dtype,
        shape=array.shape,
        input=array.ctypes.data,
        output=output.ctypes.data,
        prescale=reduction.prescale,
        postscale=reduction.postscale,
        name=name,
        owner=(array, output),
    )


def allreduce(
    arrays: Sequence[Any],
    names: Sequence[str | None],
    reduction: Reduction,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Combine several arrays, all of them under way at once."""
    inputs = [_contiguous(array) for array in arrays]
    outputs = [np.empty_like(array) for array in inputs]
    _wait(
        [
            _submit(codes.ALLREDUCE, array, output, name, process_set, reduction)
            for array, output, name in zip(inputs, outputs, names, strict=True)
        ]
    )
    return outputs
