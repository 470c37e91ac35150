"""Helpers of the estimators that programs import from here: data, checks and the cache of written data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from horovod.runner.common.util.host_hash import host_hash

from . import _by_row
from ._materialize import DatasetProperties, check_validation, write
from ._metadata import METADATA_FILE, Metadata, check_columns, from_json, of_arrow_schema, of_dataframe
from ._parquet import check_no_nulls, summarize
from .cache import TrainingDataCache

__all__ = [
    "check_shape_compatibility",
    "check_validation",
    "clear_training_cache",
    "get_dataset_properties",
    "get_simple_meta_from_parquet",
    "get_spark_df_output_schema",
    "host_hash",
    "prepare_data",
    "to_list",
]

_training_cache = TrainingDataCache()

# Programs for the original import these.
get_spark_df_output_schema = _by_row.output_schema
_get_col_info = _by_row.column_info
_train_val_split = _by_row.split_with_share
_get_spark_df_saved_file_list = _by_row.saved_files
_wait_file_available_on_dbfs = _by_row.wait_for_files


def _get_metadata(df: Any, compress_sparse: bool = True) -> Metadata:
    """Return the metadata of all columns, by default with sparse vectors in the compact form."""
    return of_dataframe(df, compress_sparse)


def clear_training_cache() -> None:
    """Forget which DataFrames have been written, so that the next `fit` writes again."""
    _training_cache.clear()


def to_list(var: Any, length: int) -> list[Any] | None:
    """Return one value, or the only one of a list, as `length` equal ones; other lists must be as long."""
    if var is None:
        return None
    values = list(var) if isinstance(var, (list, tuple)) else [var]
    if len(values) == 1:
        return values * length
    if len(values) != length:
        message = f"expected a list of {length} values, got {len(values)}: {values}"
        raise ValueError(message)
    return values


@contextmanager
def prepare_data(
    num_processes: int,
    store: Any,
    df: Any,
    label_columns: Sequence[str],
    feature_columns: Sequence[str] | None,
    validation: Any = None,
    sample_weight_col: str | None = None,
    compress_sparse: bool = False,
    partitions_per_process: int = 10,
    verbose: int = 0,
) -> Iterator[int]:
    """Write a DataFrame to the store, and give the number of its data set, which stays while it is used.

    The same DataFrame, store and parameters again give what was written before.
    """
    check_validation(validation, df)
    if num_processes <= 0 or partitions_per_process <= 0:
        message = (
            f"num_processes and partitions_per_process must be positive, "
            f"got {num_processes} and {partitions_per_process}"
        )
        raise ValueError(message)
    if not label_columns:
        message = "label_columns names no column; give at least one"
        raise ValueError(message)
    features = all_features(df.columns, feature_columns, label_columns, sample_weight_col, validation)
    wanted = {"feature_cols": features, "label_cols": label_columns}
    if sample_weight_col:
        wanted["sample_weight_col"] = [sample_weight_col]
    check_columns(df.columns, wanted, "the DataFrame")
    columns = tuple(dict.fromkeys([name for names in wanted.values() for name in names]))
    partitions = num_processes * partitions_per_process
    paths = (store.get_train_data_path(), store.get_val_data_path())
    key = (id(df), paths, validation, columns, compress_sparse, partitions)

    entry = _training_cache.take(key, df, lambda index: store.exists(store.get_train_data_path(index)))
    try:
        with entry.writing:
            if entry.properties is None:
                if verbose:
                    print(f"writing the DataFrame to {store.get_train_data_path(entry.index)}")  # noqa: T201
                entry.properties = write(
                    df, store, entry.index, columns, validation, partitions, compress_sparse
                )
        yield entry.index
    finally:
        _training_cache.give_back(entry)


def all_features(
    present: Sequence[str],
    feature_columns: Sequence[str] | None,
    label_columns: Sequence[str],
    sample_weight_col: str | None,
    validation: Any,
) -> list[str]:
    """Return the columns of the features: all that have no other use, unless they are named."""
    if feature_columns:
        return list(feature_columns)
    others = {*label_columns, sample_weight_col, validation if isinstance(validation, str) else None}
    return [name for name in present if name not in others]


def get_dataset_properties(dataset_idx: int) -> tuple[int, int, Metadata, float]:
    """Return training rows, validation rows, metadata and bytes per row of what `prepare_data` wrote."""
    known: DatasetProperties = _training_cache.properties(dataset_idx)
    return known.train_rows, known.val_rows, known.metadata, known.avg_row_size


def get_simple_meta_from_parquet(
    store: Any,
    label_columns: Sequence[str],
    feature_columns: Sequence[str] | None,
    sample_weight_col: str | None = None,
    dataset_idx: int | None = None,
) -> tuple[int, int, Metadata, float]:
    """Return the same of Parquet that is in the store already, from its footers."""
    train_path = store.get_train_data_path(dataset_idx)
    if not store.is_parquet_dataset(train_path):
        message = f"{train_path} has no Parquet data; write it there, or call fit with a DataFrame"
        raise ValueError(message)
    train = summarize(train_path, store.storage_options)
    features = all_features(train.schema.names, feature_columns, label_columns, sample_weight_col, None)
    wanted = {"feature_cols": features, "label_cols": list(label_columns)}
    if sample_weight_col:
        wanted["sample_weight_col"] = [sample_weight_col]
    check_columns(train.schema.names, wanted, f"the Parquet data at {train_path}")
    columns = [name for names in wanted.values() for name in names]
    check_no_nulls(train, columns, "training")
    if train.row_count == 0:
        message = f"the Parquet data at {train_path} has no rows to train on"
        raise ValueError(message)
    val_path = store.get_val_data_path(dataset_idx)
    val_rows = 0
    if store.is_parquet_dataset(val_path):
        val = summarize(val_path, store.storage_options)
        check_no_nulls(val, columns, "validation")
        val_rows = val.row_count
    return (
        train.row_count,
        val_rows,
        _known_metadata(store, train_path, train),
        train.byte_count / train.row_count,
    )


def _known_metadata(store: Any, path: str, summary: Any) -> Metadata:
    beside = f"{path}/{METADATA_FILE}"
    if store.exists(beside):
        return from_json(store.read(beside).decode())
    return of_arrow_schema(summary.schema)


def check_shape_compatibility(
    metadata: Metadata,
    feature_columns: Sequence[str],
    label_columns: Sequence[str],
    input_shapes: Sequence[Sequence[int]] | None = None,
    output_shapes: Sequence[Sequence[int]] | None = None,
    label_shapes: Sequence[Sequence[int]] | None = None,
) -> None:
    """Raise ValueError where shapes do not have as many elements as the rows of their columns."""
    for kind, columns, shapes in (
        ("input", feature_columns, input_shapes),
        ("label", label_columns, label_shapes),
        ("output", label_columns, output_shapes if label_shapes is None else None),
    ):
        if shapes is None:
            continue
        if len(shapes) != len(columns):
            message = (
                f"{len(shapes)} {kind} shapes for {len(columns)} columns {list(columns)}: give one for each"
            )
            raise ValueError(message)
        for name, shape in zip(columns, shapes, strict=True):
            _check_shape(kind, name, metadata[name]["shape"], shape)


def _check_shape(kind: str, name: str, elements: int | None, shape: Sequence[int]) -> None:
    if elements is None or any(size is None for size in shape[1:]):
        return
    wanted = 1
    for size in shape:
        wanted *= size if size is not None and size > 0 else 1
    if wanted != elements:
        message = (
            f"column '{name}' has {elements} elements in a row, its {kind} shape {list(shape)} has {wanted}"
        )
        raise ValueError(message)
