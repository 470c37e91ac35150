"""From the rows of a rank to batches: generators of blocks, which are arrays by column.

A block has many rows (`BLOCK_ROWS`), so that what Python does per block does not count, and few enough to
be used while they are in the caches; batches are cut from blocks as views where they can be. Nothing here
starts a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ._balance import RowSlice
from ._columns import Array, as_numbers, to_array

Block = dict[str, Array]
Transformation = Callable[[Any], Any]

BLOCK_ROWS = 16384


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """What is read, and what becomes of it.

    `sparse_sizes`: the columns in the compact form of sparse vectors, and the size of their vectors.
    `dtype`: that of all columns; `float_dtype`: that of those with floats. `edit_fields` are
    (name, dtype, shape, ...) of columns that the transformation makes or changes.
    """

    names: tuple[str, ...]
    sparse_sizes: dict[str, int] = field(default_factory=dict)
    dtype: Any = None
    float_dtype: Any = None
    transformation: Transformation | None = None
    edit_fields: tuple[Sequence[Any], ...] = ()
    removed_fields: tuple[str, ...] = ()


def read_blocks(
    filesystem: Any, slices: Iterable[RowSlice], plan: ColumnPlan, *, use_threads: bool
) -> Iterator[Block]:
    """Read the slices in their order; a block never spans two of them."""
    for part in slices:
        with pq.ParquetFile(part.group.path, filesystem=filesystem, pre_buffer=True) as file:
            begin = 0
            for batch in file.iter_batches(
                BLOCK_ROWS, row_groups=[part.group.index], columns=list(plan.names), use_threads=use_threads
            ):
                start = max(part.start - begin, 0)
                stop = min(part.stop - begin, batch.num_rows)
                begin += batch.num_rows
                if start < stop:
                    yield to_block(batch.slice(start, stop - start), plan)
                if begin >= part.stop:
                    break


def to_block(batch: Any, plan: ColumnPlan) -> Block:
    """Turn an Arrow batch into arrays, through the transformation if there is one."""
    block = {name: to_array(name, batch.column(name), plan.sparse_sizes.get(name)) for name in plan.names}
    if plan.transformation is not None:
        block = _transformed(block, plan.transformation)
    for edit in plan.edit_fields:
        name, dtype, shape = edit[0], edit[1], edit[2]
        values = as_numbers(name, block[name], dtype)
        block[name] = values.reshape(len(values), *(shape or ()))
    for name in plan.removed_fields:
        block.pop(name, None)
    return {name: _in_dtype(name, values, plan) for name, values in block.items()}


def _in_dtype(name: str, values: Array, plan: ColumnPlan) -> Array:
    values = as_numbers(name, values, plan.dtype)
    if plan.float_dtype is not None and values.dtype.kind == "f":
        return values.astype(plan.float_dtype, copy=False)
    return values


def _transformed(block: Block, transformation: Transformation) -> Block:
    """Call the user's function, which takes a pandas DataFrame of many rows and returns one."""
    import pandas as pd  # noqa: PLC0415 - only transformations need it

    frame = pd.DataFrame(
        {name: list(values) if values.ndim > 1 else values for name, values in block.items()}
    )
    result = transformation(frame)
    if isinstance(result, dict):
        return {name: np.asarray(values) for name, values in result.items()}
    if not isinstance(result, pd.DataFrame):
        message = (
            "transformation_fn must return a pandas DataFrame or a dict of arrays, "
            f"got {type(result).__name__}"
        )
        raise TypeError(message)
    return {str(name): result[name].to_numpy() for name in result.columns}


def length(block: Block) -> int:
    """The number of rows."""
    return len(next(iter(block.values()))) if block else 0


def joined(blocks: Sequence[Block]) -> Block:
    """Return several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def batches(blocks: Iterable[Block], batch_size: int) -> Iterator[Block]:
    """Cut blocks into batches of exactly `batch_size` rows, the last one excepted."""
    rest: list[Block] = []
    missing = batch_size
    for block in blocks:
        rows = length(block)
        start = 0
        if rest:
            start = min(missing, rows)
            rest.append(cut(block, 0, start))
            missing -= start
            if missing == 0:
                yield joined(rest)
                rest, missing = [], batch_size
        if not rest:
            while start + batch_size <= rows:
                yield cut(block, start, start + batch_size)
                start += batch_size
            if start < rows:
                rest = [cut(block, start, rows)]
                missing = batch_size - (rows - start)
    if rest:
        yield joined(rest)


def cut(block: Block, start: int, stop: int) -> Block:
    """Return the rows [start, stop), as views."""
    return {name: values[start:stop] for name, values in block.items()}
