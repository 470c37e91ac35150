"""TorchEstimator on a real Spark."""

from __future__ import annotations

import pytest
import torch
from estimator_data import InlineBackend, ThreeBatches, marking, stepped_weight
from pyspark.ml import Pipeline, PipelineModel
from pyspark.sql import functions as sql

import horovod.torch as hvd
from horovod.spark.common import util
from horovod.spark.common.store import Store
from horovod.spark.torch import TorchEstimator, TorchModel

bce = torch.nn.functional.binary_cross_entropy


class Xor(torch.nn.Module):
    def __init__(self, outputs=1):
        super().__init__()
        self.hidden = torch.nn.Linear(2, 8)
        self.output = torch.nn.Linear(8, outputs)

    def forward(self, features):
        return torch.sigmoid(self.output(torch.tanh(self.hidden(features))))


class Pair(torch.nn.Module):
    """Two inputs, one of a single number; two outputs."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, features, single):
        both = self.linear(torch.cat([features, single.reshape(-1, 1)], dim=1))
        return both[:, 0], both[:, 1]


def _estimator(store, **options):
    torch.manual_seed(1)
    model = options.pop("model", None) or Xor()
    given = {
        "backend": InlineBackend(),
        "store": store,
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.05),
        "loss": bce,
        "input_shapes": [[-1, 2]],
        "feature_cols": ["features"],
        "label_cols": ["y"],
        "batch_size": 8,
        "epochs": 25,
        "random_seed": 1,
        "verbose": 0,
        "partitions_per_process": 2,
    }
    return TorchEstimator(**{**given, **options})


def test_spark_trains_a_model_that_predicts_and_is_kept_in_a_pipeline(store, xor, tmp_path):
    estimator = _estimator(
        store,
        backend=None,
        num_proc=2,
        validation=0.25,
        metrics=[torch.nn.functional.l1_loss],
        gradient_compression=marking(hvd.Compression.fp16, tmp_path / "compressed"),
        run_id="first",
    )
    Pipeline(stages=[estimator]).save(str(tmp_path / "pipeline"))
    saved = Pipeline.load(str(tmp_path / "pipeline"))
    saved.getStages()[0].setStore(store)

    fitted = saved.fit(xor)

    history = fitted.stages[0].getHistory()
    assert [entry["epoch"] for entry in history] == list(range(25))
    assert history[-1]["validation"]["loss"] < 0.4 < history[0]["train"]["loss"]
    assert history[-1]["validation"]["all_metrics"][0]["group_0_y"] < 0.4
    assert len(list((tmp_path / "compressed").iterdir())) == 2
    assert store.exists(store.get_checkpoint_path("first"))
    assert store.exists(f"{store.get_logs_path('first')}/metrics.jsonl")
    fitted.save(str(tmp_path / "fitted"))
    loaded = PipelineModel.load(str(tmp_path / "fitted"))
    found = loaded.transform(xor)
    assert found.schema["y__output"].dataType.simpleString() == "float"
    assert all(round(row["y__output"]) == row["y"] for row in found.select("y", "y__output").collect())

    again = _estimator(store, epochs=1, run_id="first").fit(xor)

    assert again.getHistory()[0]["train"]["loss"] < history[-1]["train"]["loss"] + 0.05


def test_several_inputs_and_labels_with_weights_a_transformation_and_a_step_of_the_user(store, xor, tmp_path):
    def halve(frame):
        frame["x1"] = frame["x1"] / 2
        return frame

    steps = tmp_path / "steps"

    def step(model, optimizer, transform_outputs, loss_fn, inputs, labels, sample_weights):
        from horovod.spark.torch.remote import train_minibatch

        is_halved = set(inputs[1].flatten().tolist()) <= {0.0, 0.5}
        shapes = [tuple(each.shape) for each in (*inputs, *labels)]
        with steps.open("a") as file:
            print(is_halved, shapes, set(sample_weights.tolist()), file=file)
        return train_minibatch(model, optimizer, transform_outputs, loss_fn, inputs, labels, sample_weights)

    estimator = _estimator(
        store,
        model=Pair(),
        loss=[torch.nn.MSELoss(), torch.nn.functional.l1_loss],
        loss_weights=[0.9, 0.1],
        input_shapes=[[2], [-1]],
        feature_cols=["array", "x1"],
        label_cols=["y", "x2"],
        sample_weight_col="weight",
        transformation_fn=halve,
        train_minibatch_fn=step,
        inmemory_cache_all=True,
        backward_passes_per_step=2,
        val_batch_size=3,
        validation="held_out",
        epochs=2,
    )

    model = estimator.fit(xor).setOutputCols(["a", "b"])

    assert len(model.getHistory()) == 2
    # 56 rows in batches of 8, twice; x1 is 0 or 1 in the table.
    assert steps.read_text().splitlines() == ["True [(8, 2), (8,), (8,), (8,)] {0.5}"] * 14
    assert model.transform(xor).select("a", "b").distinct().count() == 4


@pytest.mark.parametrize("own_step", [False, True])
def test_gradients_of_several_batches_are_added_before_a_step(spark, store, tmp_path, own_step):
    """Three batches an epoch in groups of two: a step for two batches, then one for the third."""
    steps = tmp_path / "steps"

    class Counted(torch.optim.SGD):
        def step(self, closure=None):
            with steps.open("a") as file:
                print("step", file=file)
            return super().step(closure)

    def step(*arguments):
        from horovod.spark.torch.remote import train_minibatch

        return train_minibatch(*arguments)

    spark.createDataFrame([(1.0, 1.0)] * 6, ["x", "y"]).write.parquet(store.get_train_data_path())
    linear = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(linear.weight)

    model = _estimator(
        store,
        data_module=ThreeBatches,
        model=linear,
        optimizer=Counted(linear.parameters(), lr=0.01),
        loss=torch.nn.functional.mse_loss,
        input_shapes=[[-1, 1]],
        feature_cols=["x"],
        batch_size=2,
        backward_passes_per_step=2,
        train_minibatch_fn=step if own_step else None,
        epochs=2,
    ).fit_on_parquet()

    wanted = stepped_weight([(0, 1), (2,)] * 2, 0.01, mean_of=1)
    assert steps.read_text().splitlines() == ["step"] * 4
    assert model.getModel().weight.item() == pytest.approx(wanted, rel=1e-5)


def test_a_model_with_vectors_as_outputs_and_integers_as_labels(spark, xor):
    options = {"feature_columns": ["features"], "input_shapes": [[2]]}
    metadata = util._get_metadata(xor)

    vectors = TorchModel(model=Xor(2), label_columns=["y"], _metadata=metadata, **options).transform(xor)
    rounded = TorchModel(model=Xor(), label_columns=["x1"], _metadata=metadata, **options).transform(xor)

    assert vectors.schema["y__output"].dataType.typeName() == "vectorudt"
    assert vectors.first()["y__output"].size == 2
    assert rounded.schema["x1__output"].dataType.simpleString() == "int"
    assert rounded.first()["x1__output"] in (0, 1)


def test_parquet_of_others_is_trained_on(spark, store):
    frame = spark.range(40).select(
        (sql.col("id") / 40).alias("x"), (sql.col("id") % 2).cast("double").alias("y")
    )
    frame.write.parquet(store.get_train_data_path())
    linear = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sigmoid())
    estimator = _estimator(store, model=linear, feature_cols=["x"], input_shapes=[[-1, 1]], epochs=1)

    model = estimator.fit_on_parquet()

    assert model.getHistory()[0]["train"]["loss"] > 0
    assert model.transform(frame).where("y__output is null").count() == 0


def test_sparse_vectors_and_empty_partitions(spark, store):
    from pyspark.ml.linalg import Vectors

    rows = [(Vectors.sparse(4, [index % 4], [1.0]), float(index % 2)) for index in range(16)]
    frame = spark.createDataFrame(rows, ["v", "y"]).repartition(12, "y")
    linear = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid())
    options = {"feature_cols": ["v"], "input_shapes": [[-1, 4]], "compress_sparse_cols": True, "epochs": 3}

    model = _estimator(store, model=linear, **options).fit(frame)

    assert model.getHistory()[-1]["train"]["loss"] < model.getHistory()[0]["train"]["loss"]
    assert (
        util._get_metadata(frame, compress_sparse=True)["v"]["intermediate_format"] == "custom_sparse_format"
    )
    with util.prepare_data(2, store, frame, ["y"], ["v"], compress_sparse=True) as index:
        stored = spark.read.parquet(store.get_train_data_path(index))
        assert {len(row["v"]) for row in stored.collect()} == {3}


def test_a_frame_with_nulls_is_refused(spark, store, xor):
    sometimes = sql.when(sql.col("x1") == 0, sql.col("features"))

    with pytest.raises(ValueError, match=r"training data has nulls.*'features' \(32 of 64 rows\)"):
        _estimator(store).fit(xor.withColumn("features", sometimes))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/proc/nowhere/store", "at file:///proc/nowhere/store: FileNotFoundError"),
        ("nosuch://bucket/store", "at nosuch://bucket/store: ValueError: Protocol not known"),
    ],
)
def test_a_store_that_cannot_be_written_to_is_refused_before_spark_works(spark, xor, path, reason):
    spark.sparkContext.setJobGroup("unreachable", path)

    with pytest.raises(RuntimeError, match=f"the driver cannot write to the store {reason}"):
        _estimator(Store.create(path)).fit(xor)

    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("unreachable")) == []
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_data_that_was_written_is_used_again(store, xor):
    with util.prepare_data(2, store, xor, ["y"], ["features"], validation=0.5) as first:
        with util.prepare_data(2, store, xor, ["y"], ["features"], validation=0.5) as same:
            assert same == first
        with util.prepare_data(2, store, xor, ["y"], ["array"]) as other:
            assert other != first
        train, val, metadata, row_bytes = util.get_dataset_properties(first)
    assert (train + val, sorted(metadata)) == (64, ["features", "y"])
    assert 0 < val < 64
    assert row_bytes > 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"store": None}, "needs a store"),
        ({"num_proc": 2}, 'At most one of parameters "backend" and "num_proc"'),
        ({"label_cols": None}, "label_cols must name"),
        ({"label_cols": ["nothing"]}, r"label_cols names \['nothing'\]"),
        ({"optimizer": None}, "needs an optimizer"),
        ({"loss_constructors": [torch.nn.BCELoss]}, "either loss or loss_constructors, not both"),
        ({"backward_passes_per_step": 0}, "backward_passes_per_step must be positive, got 0"),
        (
            {"transformation_removed_fields": ["features"]},
            r"transformation_removed_fields names \['features'\]",
        ),
        ({"validation": 1.5}, r"1.5 must be in \[0, 1\)"),
        ({"validation": "nothing"}, "Validation column nothing does not exist"),
        ({"input_shapes": [[-1, 3]]}, r"'features' has 2 elements in a row, its input shape \[-1, 3\]"),
        ({"loss_weights": [0.5, 0.5]}, "loss_weights has 2 weights for 1 labels"),
    ],
)
def test_wrong_parameters_are_refused(store, xor, options, text):
    with pytest.raises(ValueError, match=text):
        _estimator(**{"store": store, **options}).fit(xor)
