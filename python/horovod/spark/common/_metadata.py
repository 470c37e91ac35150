"""What is known of the columns: their Spark type, size, and form in the intermediate Parquet.

The metadata of a column is a dictionary: `spark_data_type` (a class of pyspark.sql.types or
pyspark.ml.linalg), `is_sparse_vector_only`, `intermediate_format` (see constants), `max_size` (most values of
a row), `shape` (elements of a row; None: not known).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.ml import linalg
from pyspark.ml.functions import vector_to_array
from pyspark.sql import functions as sql
from pyspark.sql import types

from . import constants

Metadata = dict[str, dict[str, Any]]

# Beside the data, so that a data set that we have written says what it was; readers of Parquet pass it over.
METADATA_FILE = "_horovod_metadata.json"

_ARROW_TYPES = (
    (pa.types.is_boolean, types.BooleanType),
    (pa.types.is_int8, types.ByteType),
    (pa.types.is_int16, types.ShortType),
    (pa.types.is_int32, types.IntegerType),
    (pa.types.is_integer, types.LongType),
    (pa.types.is_float32, types.FloatType),
    (pa.types.is_floating, types.DoubleType),
    (pa.types.is_decimal, types.DecimalType),
    (pa.types.is_list, types.ArrayType),
    (pa.types.is_large_list, types.ArrayType),
    (pa.types.is_fixed_size_list, types.ArrayType),
    (pa.types.is_string, types.StringType),
    (pa.types.is_large_string, types.StringType),
    (pa.types.is_binary, types.BinaryType),
)


def column(
    kind: type,
    *,
    shape: int | None = 1,
    max_size: int | None = None,
    sparse: bool = False,
    compact: bool = False,
) -> dict[str, Any]:
    """Return the metadata of one column."""
    is_vector = kind in (linalg.DenseVector, linalg.SparseVector)
    stored = constants.CUSTOM_SPARSE if compact else constants.ARRAY if is_vector else constants.NOCHANGE
    return {
        "spark_data_type": kind,
        "is_sparse_vector_only": sparse,
        "intermediate_format": stored,
        "max_size": shape if max_size is None else max_size,
        "shape": shape,
    }


def is_vector_field(field: types.StructField) -> bool:
    """Whether a column holds vectors of Spark ML."""
    return isinstance(field.dataType, linalg.VectorUDT)


# The first field of a vector's own form; Spark has no function that tells it.
_SPARSE = "0"


def as_array(vector: Any) -> Any:
    """Return a column of vectors as arrays; null stays null, where Spark's function would fail."""
    return sql.when(vector.isNotNull(), vector_to_array(vector))


def _vector_measures(name: str, counts_values: bool) -> list[Any]:
    """Return whether all are sparse, least and most of size, and the most values of a row."""
    vector = sql.col(f"`{name}`")
    kind = sql.get_json_object(sql.to_json(sql.struct(vector.alias("v"))), "$.v.type")
    sparse = (kind == _SPARSE).cast("int")
    size = sql.size(as_array(vector))
    values = sql.udf(_value_count, types.IntegerType())(vector) if counts_values else size
    return [sql.min(sparse), sql.min(size), sql.max(size), sql.max(values)]


def _value_count(vector):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - Spark reads annotations
    return None if vector is None else len(vector.values)


def of_dataframe(df: Any, compress_sparse: bool = False) -> Metadata:
    """Return the metadata of all columns; one job over the data if there are vectors or arrays."""
    measures = []
    for field in df.schema.fields:
        name = field.name
        if is_vector_field(field):
            measures += _vector_measures(name, compress_sparse)
        elif isinstance(field.dataType, types.ArrayType):
            size = sql.size(sql.col(f"`{name}`"))
            measures += [sql.min(size), sql.max(size)]
    row = iter(df.agg(*measures).collect()[0]) if measures else iter(())
    return {field.name: _of_field(field, row, compress_sparse) for field in df.schema.fields}


def _of_field(field: types.StructField, row: Any, compress_sparse: bool) -> dict[str, Any]:
    if is_vector_field(field):
        all_sparse, least, most, count = (next(row) for _ in range(4))
        _check_sizes(field.name, least, most)
        # A column of both kinds is dense, and stored so: that is what all of its rows can be.
        kind = linalg.SparseVector if all_sparse else linalg.DenseVector
        compact = bool(all_sparse) and compress_sparse
        return column(kind, shape=most, max_size=count, sparse=bool(all_sparse), compact=compact)
    if isinstance(field.dataType, types.ArrayType):
        least, most = next(row), next(row)
        _check_sizes(field.name, least, most)
        is_nested = isinstance(field.dataType.elementType, types.ArrayType)
        return column(types.ArrayType, shape=None if is_nested else most)
    return column(type(field.dataType))


def _check_sizes(name: str, least: int | None, most: int | None) -> None:
    if least is not None and 0 <= least != most:
        message = (
            f"column '{name}' has vectors or arrays of {least} to {most} elements; all must have one length"
        )
        raise ValueError(message)


def of_arrow_schema(schema: pa.Schema) -> Metadata:
    """Return the metadata of Parquet that others have written; sizes of arrays are not known."""
    found = {}
    for field in schema:
        kind = next((spark for test, spark in _ARROW_TYPES if test(field.type)), None)
        if kind is not None:
            found[field.name] = column(kind, shape=None if kind is types.ArrayType else 1)
    return found


def to_json(metadata: Metadata) -> str:
    """Return the metadata as text."""
    return json.dumps(
        {
            name: {**known, "spark_data_type": known["spark_data_type"].__name__}
            for name, known in metadata.items()
        }
    )


def from_json(text: str) -> Metadata:
    """Read what `to_json` wrote; types are looked up among those of Spark."""
    known: Metadata = json.loads(text)
    for name, value in known.items():
        kind = value["spark_data_type"]
        found = getattr(types, kind, None) or getattr(linalg, kind, None)
        if not isinstance(found, type):
            message = f"the metadata of column '{name}' name the type {kind!r}, which Spark does not have"
            raise ValueError(message)  # noqa: TRY004 - a bad file, not a bad argument
        value["spark_data_type"] = found
    return known


def check_columns(present: Sequence[str], wanted: Mapping[str, Sequence[str]], where: str) -> None:
    """Raise ValueError for columns that are named and not there; `wanted`: by name of the parameter."""
    for parameter, names in wanted.items():
        missing = [name for name in names if name not in present]
        if missing:
            message = f"{parameter} names {missing}, which {where} does not have; it has {list(present)}"
            raise ValueError(message)
