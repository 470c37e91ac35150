"""What programs for the original import from horovod.spark.common.util, on a real Spark."""

from __future__ import annotations

import pytest
from pyspark.ml.linalg import DenseVector, SparseVector, VectorUDT
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    FloatType,
    IntegerType,
    NullType,
    StructField,
    StructType,
)

from horovod.spark.common import constants, util

DENSE, SPARSE = DenseVector([1.0, 2.0]), SparseVector(2, {1: 1.0})


def _frame(spark, rows, **kinds):
    return spark.createDataFrame(rows, StructType([StructField(name, kind) for name, kind in kinds.items()]))


@pytest.fixture
def frame(spark):
    kinds = {
        "number": FloatType(),
        "nothing": NullType(),
        "list": ArrayType(IntegerType()),
        "dense": VectorUDT(),
        "sparse": VectorUDT(),
        "mixed": VectorUDT(),
    }
    rows = [(0.5, None, [1, 2], DENSE, SPARSE, DENSE), (None, None, [3, 4], DENSE, SPARSE, SPARSE)]
    return _frame(spark, rows, **kinds)


def test_values_are_measured_by_column(frame):
    types, shapes, most = util._get_col_info(frame)

    assert types == {
        "number": {float, type(None)},
        "nothing": {type(None)},
        "list": {list},
        "dense": {DenseVector},
        "sparse": {SparseVector},
        "mixed": {DenseVector, SparseVector},
    }
    assert shapes == {"number": 1, "nothing": 1, "list": 2, "dense": 2, "sparse": 2, "mixed": 2}
    assert most == {"number": 1, "nothing": 1, "list": 2, "dense": 2, "sparse": 1, "mixed": 2}


@pytest.mark.parametrize("other", [SparseVector(1, {0: 1.0}), DenseVector([1.0])])
def test_vectors_of_several_sizes_are_refused(spark, other):
    frame = _frame(spark, [(SPARSE,), (other,)], v=VectorUDT())

    with pytest.raises(ValueError, match="'v' has rows of 1 to 2 elements"):
        util._get_col_info(frame)


def test_only_columns_of_sparse_vectors_alone_are_stored_compactly(frame):
    metadata = util._get_metadata(frame.select("dense", "sparse", "mixed"))

    forms = {
        name: (known["spark_data_type"], known["intermediate_format"]) for name, known in metadata.items()
    }
    assert forms == {
        "dense": (DenseVector, constants.ARRAY),
        "sparse": (SparseVector, constants.CUSTOM_SPARSE),
        "mixed": (DenseVector, constants.ARRAY),
    }
    assert [known["max_size"] for known in metadata.values()] == [2, 1, 2]


@pytest.mark.parametrize(("kind", "yes", "no"), [(IntegerType(), 1, 0), (BooleanType(), True, False)])
def test_rows_are_split_by_a_column(spark, kind, yes, no):
    frame = _frame(spark, [(1.0, no)] * 4 + [(1.0, yes)], data=FloatType(), val=kind)

    train, val, share = util._train_val_split(frame, "val")

    assert (train.count(), val.count(), share) == (4, 1, 0.2)


def test_rows_are_split_by_a_share_or_not_at_all(spark):
    frame = _frame(spark, [(1.0,)] * 5, data=FloatType())

    assert util._train_val_split(frame, 0.2)[2] == 0.2
    assert util._train_val_split(frame, None)[1:] == (None, 0.0)


def test_predictions_have_the_types_of_their_labels(frame):
    schema = util.get_spark_df_output_schema(
        frame.schema, ["number", "sparse"], ["a", "b"], util._get_metadata(frame.select("number", "sparse"))
    )

    assert schema.names == [*frame.columns, "a", "b"]
    assert (type(schema["a"].dataType), type(schema["b"].dataType)) == (FloatType, VectorUDT)
    with pytest.raises(ValueError, match=r"has columns \['list'\] already"):
        util.get_spark_df_output_schema(frame.schema, ["number"], ["list"], {})


def test_files_that_spark_has_written_are_found(spark, store, tmp_path):
    folder = str(tmp_path / "data")
    spark.range(100).repartition(4).write.parquet(folder)

    names = sorted(util._get_spark_df_saved_file_list(folder))

    assert [name[:10] for name in names] == ["part-00000", "part-00001", "part-00002", "part-00003"]
    util._wait_file_available_on_dbfs(store, [f"file://{folder}/{name}" for name in names])


def test_one_value_stands_for_all_labels():
    assert util.to_list(None, 2) is None
    assert util.to_list("a", 2) == util.to_list(["a"], 2) == ["a", "a"]
    assert util.to_list(["a", "b"], 2) == ["a", "b"]
    with pytest.raises(ValueError, match="expected a list of 4 values, got 2"):
        util.to_list(["a", "b"], 4)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_processes": 0, "label_columns": ["y"]}, "must be positive, got 0 and 10"),
        ({"num_processes": 1, "label_columns": []}, "label_columns names no column"),
    ],
)
def test_data_is_not_prepared_for_nobody(xor, store, arguments, text):
    with (
        pytest.raises(ValueError, match=text),
        util.prepare_data(store=store, df=xor, feature_columns=["features"], **arguments),
    ):
        pass
