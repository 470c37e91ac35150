"""Arrow columns to arrays whose first dimension is the row. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import _sparse

Array = npt.NDArray[Any]


def to_array(name: str, column: Any, sparse_size: int | None = None) -> Array:
    """Return a column as one array; nested lists become dimensions, so they must all be of one length.

    `sparse_size`: the column holds vectors of this size in the compact form, and is made dense.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if column.null_count:
        message = (
            f"column '{name}' has nulls ({column.null_count} in {len(column)} rows), which cannot be "
            "trained on; fill them (df.fillna) or drop their rows (df.dropna)"
        )
        raise ValueError(message)
    values = _lists(name, column) if _is_list(column.type) else _scalars(name, column)
    return values if sparse_size is None else _sparse.decode(values, sparse_size)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _lists(name: str, column: Any) -> Array:
    if pa.types.is_fixed_size_list(column.type):
        width = column.type.list_size
    else:
        lengths = np.diff(column.offsets.to_numpy())
        width = int(lengths[0]) if len(lengths) else 0
        if len(lengths) and (lengths != width).any():
            message = (
                f"column '{name}' has arrays of {lengths.min()} to {lengths.max()} elements; "
                "arrays of one column must have one length to form batches"
            )
            raise ValueError(message)
    inner = to_array(name, column.flatten())
    return inner.reshape(len(column), width, *inner.shape[1:])


def _scalars(name: str, column: Any) -> Array:
    kind = column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_temporal(kind):
        message = f"column '{name}' has the type {kind}, which is not a number: convert it before fit"
        raise ValueError(message)
    array: Array = column.to_numpy(zero_copy_only=False)
    return array


def as_numbers(name: str, array: Array, dtype: npt.DTypeLike | None) -> Array:
    """Return the array in a dtype that frameworks take; None: as it is."""
    if array.dtype == object:
        first = array[0] if len(array) else None
        if isinstance(first, (np.ndarray, list, tuple)):  # what a transformation made of a DataFrame holds
            array = stack(name, array)
        else:
            message = (
                f"column '{name}' holds {type(first).__name__}, which is not a number; convert it before fit "
                "or in transformation_fn"
            )
            raise ValueError(message)
    return array if dtype is None else np.ascontiguousarray(array, dtype)


def stack(name: str, rows: Any) -> Array:
    """Return arrays of one shape as one array."""
    try:
        stacked = np.stack([np.asarray(row) for row in rows])
    except ValueError as error:
        shapes = sorted({np.asarray(row).shape for row in rows})
        message = f"column '{name}' has arrays of the shapes {shapes[:4]}; all must be the same"
        raise ValueError(message) from error
    if stacked.dtype == object:
        return stack(name, [stack(name, row) for row in rows])
    return stacked
