"""What programs for the original ask of DataFrames by names with an underscore; the estimators do not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyspark.sql import types

from ._materialize import split
from ._parquet import data_files

_APPEAR_SECONDS = 30.0
_LOOK_SECONDS = 0.1

Seen = tuple[set[type], set[int], set[int]]


def column_info(df: Any) -> tuple[dict[str, set[type]], dict[str, int], dict[str, int]]:
    """Return by column: the Python types of its values, their elements, and the most values of a row.

    Reads all rows in Python. ValueError for rows of different sizes.
    """
    seen: dict[str, Seen] = {name: (set(), set(), set()) for name in df.columns}
    for name, (kinds, shapes, counts) in df.rdd.mapPartitions(_look).collect():
        seen[name][0].update(kinds)
        seen[name][1].update(shapes)
        seen[name][2].update(counts)
    for name, (kinds, shapes, counts) in seen.items():
        may_vary = any(kind.__name__ == "SparseVector" for kind in kinds)
        for numbers in (shapes,) if may_vary else (shapes, counts):
            if len(numbers) > 1:
                message = f"column '{name}' has rows of {min(numbers)} to {max(numbers)} elements"
                raise ValueError(message)
    return (
        {name: kinds for name, (kinds, _, _) in seen.items()},
        {name: max(shapes, default=1) for name, (_, shapes, _) in seen.items()},
        {name: max(counts, default=1) for name, (_, _, counts) in seen.items()},
    )


def _look(rows: Iterable[Any]) -> Iterator[tuple[str, Seen]]:
    """Measure the rows of a partition, where they are."""
    seen: dict[str, Seen] = {}
    for row in rows:
        for name, value in row.asDict().items():
            shape, count = _measure(value)
            kinds, shapes, counts = seen.setdefault(name, (set(), set(), set()))
            kinds.add(type(value))
            shapes.add(shape)
            counts.add(count)
    yield from seen.items()


def _measure(value: Any) -> tuple[int, int]:
    if type(value).__name__ in ("DenseVector", "SparseVector"):
        return len(value), len(value.values)
    if isinstance(value, list):
        return len(value), len(value)
    return 1, 1


def split_with_share(df: Any, validation: Any) -> tuple[Any, Any | None, float]:
    """Return the rows to train on, those to validate with, and the share of the latter."""
    train, val = split(df, validation)
    if val is None:
        return train, None, 0.0
    if not isinstance(validation, str):
        return train, val, float(validation)
    rows, all_rows = val.count(), df.count()
    return train, val, rows / all_rows if all_rows else 0.0


def output_schema(
    schema: Any, label_cols: Sequence[str], output_cols: Sequence[str], metadata: dict[str, Any]
) -> Any:
    """Return the schema of a DataFrame with predictions: each is of the type of its label."""
    if len(label_cols) != len(output_cols):
        message = f"{len(output_cols)} output columns for {len(label_cols)} labels: give one for each"
        raise ValueError(message)
    taken = [name for name in output_cols if name in schema.names]
    if taken:
        message = f"the DataFrame has columns {taken} already, which predictions are to have; choose others"
        raise ValueError(message)
    fields = [*schema.fields]
    for label, name in zip(label_cols, output_cols, strict=True):
        if label in schema.names:
            known = schema[label]
            fields.append(types.StructField(name, known.dataType, known.nullable))
        else:
            fields.append(types.StructField(name, _field_type(metadata[label]["spark_data_type"])))
    return types.StructType(fields)


def _field_type(kind: Any) -> Any:
    if kind.__name__ in ("DenseVector", "SparseVector"):
        from pyspark.ml.linalg import VectorUDT  # noqa: PLC0415 - of few labels

        return VectorUDT()
    return kind()


def saved_files(path: str) -> list[str]:
    """Return the names of the Parquet files of a folder."""
    return [name.rsplit("/", 1)[1] for name in data_files(path)[1]]


def wait_for_files(store: Any, paths: Sequence[str]) -> None:
    """Wait until a store shows all files; RuntimeError if it does not within half a minute."""
    end = time.monotonic() + _APPEAR_SECONDS
    while missing := [path for path in paths if not store.exists(path)]:
        if time.monotonic() >= end:
            message = f"these files did not appear within {_APPEAR_SECONDS:g} s: {missing}"
            raise RuntimeError(message)
        time.sleep(_LOOK_SECONDS)
