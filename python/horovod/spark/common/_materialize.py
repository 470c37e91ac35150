"""A DataFrame to Parquet in the store: training and validation data, vectors as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as sql
from pyspark.sql import types

from . import constants
from ._metadata import METADATA_FILE, Metadata, as_array, of_dataframe, to_json
from ._parquet import ParquetSummary, check_no_nulls, summarize
from ._sparse import encode

_SPLIT_SEED = 1


@dataclass(frozen=True, slots=True)
class DatasetProperties:
    """What training needs to know of a data set."""

    train_rows: int
    val_rows: int
    metadata: Metadata
    avg_row_size: float


def check_validation(validation: Any, df: Any = None) -> None:
    """Raise ValueError unless this is None, a share in [0, 1) or the name of a boolean or numeric column."""
    if validation is None or validation == 0:
        return
    if isinstance(validation, bool) or not isinstance(validation, (int, float, str)):
        message = (
            "validation must be a share in [0, 1) or the name of a column, "
            f"got {type(validation).__name__}: {validation!r}"
        )
        raise ValueError(message)  # noqa: TRY004 - what programs expect
    if isinstance(validation, str):
        if df is not None:
            _check_validation_column(validation, df)
    elif not 0 <= validation < 1:
        message = f"Validation split {validation} must be in [0, 1)"
        raise ValueError(message)


def _check_validation_column(name: str, df: Any) -> None:
    if name not in df.columns:
        message = f"Validation column {name} does not exist in the DataFrame; it has {df.columns}"
        raise ValueError(message)
    kind = df.schema[name].dataType
    if not isinstance(kind, (types.BooleanType, types.NumericType)):
        message = f"Validation column {name} must be boolean or a number, got {kind.simpleString()}"
        raise ValueError(message)  # noqa: TRY004 - what programs expect


def split(df: Any, validation: Any, seed: int | None = None) -> tuple[Any, Any | None]:
    """Return the rows to train on and those to validate with, None if there are none."""
    if not validation:
        return df, None
    if isinstance(validation, str):
        column = sql.col(f"`{validation}`")
        chosen = column if isinstance(df.schema[validation].dataType, types.BooleanType) else column > 0
        chosen = sql.coalesce(chosen, sql.lit(False))
        return df.filter(~chosen).drop(validation), df.filter(chosen).drop(validation)
    train, val = df.randomSplit(
        [1.0 - validation, validation], seed=seed if seed is not None else _SPLIT_SEED
    )
    return train, val


def stored_form(df: Any, metadata: Metadata) -> Any:
    """Return the DataFrame as Parquet has it: vectors become arrays, sparse ones compact if asked."""
    columns = []
    for name in df.columns:
        known, column = metadata[name], sql.col(f"`{name}`")
        if known["intermediate_format"] == constants.ARRAY:
            column = as_array(column)
        elif known["intermediate_format"] == constants.CUSTOM_SPARSE:
            column = _compact(known["max_size"])(column)
        columns.append(column.alias(name))
    return df.select(*columns)


def _compact(max_size: int) -> Any:
    def compact(vector: Any) -> list[float] | None:
        return None if vector is None else encode(vector.indices.tolist(), vector.values.tolist(), max_size)

    compact.__annotations__ = {}  # Spark would read them
    return sql.udf(compact, types.ArrayType(types.DoubleType()))


def write(
    df: Any, store: Any, index: int, columns: Sequence[str], validation: Any, partitions: int, compress: bool
) -> DatasetProperties:
    """Write both parts, and return what their footers say. Overwrites what was there."""
    needed = [*columns, validation] if isinstance(validation, str) and validation not in columns else columns
    chosen = df.select(*[sql.col(f"`{name}`") for name in needed])
    metadata = of_dataframe(chosen.select(*[sql.col(f"`{name}`") for name in columns]), compress)
    train, val = split(chosen, validation)
    train_summary = _written(train, store, store.get_train_data_path(index), metadata, partitions)
    _check_written(train_summary, list(columns), "training", f"no rows to train on ({validation=})")
    val_rows = 0
    if val is not None:
        val_summary = _written(val, store, store.get_val_data_path(index), metadata, partitions)
        _check_written(val_summary, list(columns), "validation", f"{validation=} selects no rows")
        val_rows = val_summary.row_count
    rows = train_summary.row_count
    return DatasetProperties(rows, val_rows, metadata, train_summary.byte_count / rows)


def _written(df: Any, store: Any, path: str, metadata: Metadata, partitions: int) -> ParquetSummary:
    stored = stored_form(df.select(*metadata), metadata)
    stored.repartition(partitions).write.mode("overwrite").parquet(path)
    store.write_text(f"{path}/{METADATA_FILE}", to_json(metadata))
    try:
        return summarize(path, store.storage_options)
    except FileNotFoundError as error:
        message = (
            f"Spark has written the data to {path}, but the driver finds none there; the store must be "
            "a folder that the driver and all executors reach (see Store.create)"
        )
        raise RuntimeError(message) from error


def _check_written(summary: ParquetSummary, columns: list[str], where: str, no_rows: str) -> None:
    if summary.row_count == 0:
        message = f"the DataFrame has {no_rows}" if where == "training" else f"{no_rows} of the DataFrame"
        raise ValueError(message)
    check_no_nulls(summary, columns, where)
