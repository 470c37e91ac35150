"""Predictions as columns of a DataFrame: a vectorized function of Spark over the columns of the features.

All other columns stay in the JVM, and nothing is computed before Spark needs it. Works on Spark Connect, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.ml import linalg
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.sql import functions as sql
from pyspark.sql import types

from ._columns import Array, as_numbers
from ._metadata import is_vector_field

# Rows that a model sees at a time; Spark's batches may have 10000 rows, whose activations could be large.
_ROWS_AT_ONCE = 1024
_STRUCT = "__horovod_predictions"


class Predictor(ABC):
    """A model on its way to executors. `load` is called once for the rows of a partition."""

    @abstractmethod
    def load(self) -> Callable[[list[Array]], list[Array]]:
        """Return a function from the features of some rows to one array per label, rows first."""


@dataclass(frozen=True, slots=True)
class Output:
    """One column of predictions: its name, its type in Spark, and whether a vector is made of it."""

    name: str
    kind: Any
    vector: type | None = None


def choose_output(name: str, label_type: type | None, elements: int) -> Output:
    """Return the type of a prediction: that of the label if a row has one number, else a vector."""
    if label_type in (linalg.DenseVector, linalg.SparseVector) or elements != 1:
        vector = linalg.SparseVector if label_type is linalg.SparseVector else linalg.DenseVector
        return Output(name, types.ArrayType(types.DoubleType()), vector)
    numbers = (types.BooleanType, types.IntegralType, types.FloatType, types.DoubleType)
    if label_type is not None and issubclass(label_type, numbers):
        return Output(name, label_type())
    return Output(name, types.DoubleType())


def add_predictions(
    df: Any,
    predictor: Predictor,
    features: Sequence[str],
    names: Sequence[str],
    label_types: Sequence[type | None],
) -> Any:
    """Return the DataFrame with one more column per label."""
    missing = [name for name in features if name not in df.columns]
    if missing:
        message = (
            f"transform: the DataFrame has no column {missing}, which the model was trained on; "
            f"it has {df.columns}"
        )
        raise ValueError(message)
    columns = [_feature(df.schema[name]) for name in features]
    sizes = _output_sizes(df.select(*columns), predictor, len(names))
    outputs = [choose_output(*each) for each in zip(names, label_types, sizes, strict=True)]
    struct = types.StructType([types.StructField(output.name, output.kind) for output in outputs])
    predicted = df.withColumn(_STRUCT, _function(predictor, list(features), outputs, struct)(*columns))
    made = [_column(output).alias(output.name) for output in outputs]
    kept = [sql.col(f"`{name}`") for name in df.columns if name not in names]
    return predicted.select(*kept, *made)


def _feature(field: types.StructField) -> Any:
    column = sql.col(f"`{field.name}`")
    text = sql.lit(f"transform: column '{field.name}' has nulls; fill or drop them")
    checked = sql.when(column.isNull(), sql.raise_error(text).cast(field.dataType)).otherwise(column)
    if is_vector_field(field):
        checked = sql.when(column.isNull(), sql.raise_error(text).cast("array<double>")).otherwise(
            vector_to_array(column)
        )
    return checked.alias(field.name)


def _column(output: Output) -> Any:
    column = sql.col(f"`{_STRUCT}`.`{output.name}`")
    if output.vector is linalg.DenseVector:
        return array_to_vector(column)
    if output.vector is linalg.SparseVector:
        return sql.udf(lambda values: _to_sparse(values), linalg.VectorUDT())(column)  # noqa: PLW0108
    return column


def _to_sparse(values: Any) -> Any:
    present = [index for index, value in enumerate(values) if value != 0]
    return linalg.Vectors.sparse(len(values), present, [values[index] for index in present])


def _output_sizes(df: Any, predictor: Predictor, count: int) -> list[int]:
    """Return how many numbers each output has for a row: known after a look at the first row."""
    frame = df.limit(1).toPandas()
    if len(frame) == 0:
        return [1] * count
    predictions = predictor.load()(_arrays([frame[name] for name in frame.columns], list(frame.columns)))
    if len(predictions) != count:
        message = f"the model has {len(predictions)} outputs for {count} labels: they must be as many"
        raise ValueError(message)
    return [prediction[0].size for prediction in predictions]


def _arrays(series: Sequence[Any], names: Sequence[str]) -> list[Array]:
    return [as_numbers(name, column.to_numpy(), None) for name, column in zip(names, series, strict=True)]


def _function(predictor: Predictor, names: list[str], outputs: list[Output], struct: Any) -> Any:
    import pandas as pd  # noqa: PLC0415 - Spark needs it for such functions, the driver's other work does not

    def predict(batches: Any) -> Any:
        model = predictor.load()
        for series in batches:
            # Spark gives a single column without a tuple around it.
            arrays = _arrays([series] if isinstance(series, pd.Series) else series, names)
            pieces = [
                model([array[start : start + _ROWS_AT_ONCE] for array in arrays])
                for start in range(0, len(arrays[0]), _ROWS_AT_ONCE)
            ]
            whole = [np.concatenate(parts) for parts in zip(*pieces, strict=True)]
            yield pd.DataFrame(
                {out.name: _cells(out, part) for out, part in zip(outputs, whole, strict=True)}
            )

    predict.__annotations__ = {"batches": Iterator[tuple[pd.Series, ...]], "return": Iterator[pd.DataFrame]}
    return sql.pandas_udf(predict, struct)  # type: ignore[call-overload, unused-ignore]


def _cells(output: Output, predictions: Array) -> Any:
    """Return the cells of a column; a prediction of an integer label is rounded."""
    flat = predictions.reshape(len(predictions), -1)
    if output.vector is not None:
        return list(flat.astype(np.float64))
    column = flat[:, 0]
    if isinstance(output.kind, types.BooleanType):
        return np.rint(column) != 0
    if isinstance(output.kind, types.IntegralType):
        return np.rint(column).astype(np.int64)
    return column
