"""KerasEstimator on a real Spark, with Keras 3 on PyTorch, or on TensorFlow where that is installed."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_data import InlineBackend, ProcessBackend, marking
from packages import need
from pyspark.ml import Pipeline, PipelineModel

keras = need("keras", "spark")

import horovod.keras
from horovod.spark.common.store import LocalStore
from horovod.spark.keras import KerasEstimator, KerasModel


def _model(inputs=1, layer=keras.layers.Identity):
    keras.utils.set_random_seed(1)
    features = [keras.Input((2,)) for _ in range(inputs)]
    joined = layer()(features[0] if inputs == 1 else keras.layers.Concatenate()(features))
    hidden = keras.layers.Dense(8, activation="tanh")(joined)
    outputs = [keras.layers.Dense(1, activation="sigmoid")(hidden) for _ in range(inputs)]
    return keras.Model(features, outputs if inputs > 1 else outputs[0])


def _estimator(store, **options):
    given = {
        "backend": InlineBackend(),
        "store": store,
        "model": _model(),
        "optimizer": keras.optimizers.Adam(0.05),
        "loss": "binary_crossentropy",
        "feature_cols": ["features"],
        "label_cols": ["y"],
        "batch_size": 8,
        "epochs": 20,
        "random_seed": 1,
        "verbose": 0,
        "partitions_per_process": 2,
    }
    return KerasEstimator(**{**given, **options})


def _own_layer():
    """Return a class that no process can import: it is found by `custom_objects` alone."""

    class Centred(keras.layers.Layer):
        def call(self, inputs):
            return 2 * inputs - 1

    return Centred


def _spoiler():
    """Return a callback that spoils the model before its second epoch."""

    class Spoiler(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                self.model.set_weights([0 * weight for weight in self.model.get_weights()])

    return Spoiler()


def test_a_fitted_pipeline_predicts_is_saved_and_trained_on(xor, tmp_path):
    store = LocalStore(str(tmp_path / "store"))
    layer = _own_layer()
    own = {"model": _model(layer=layer), "custom_objects": {"Centred": layer}, "run_id": "first"}
    estimator = _estimator(
        store,
        validation="held_out",
        metrics=["mae"],
        gradient_compression=marking(horovod.keras.Compression.fp16, tmp_path / "compressed"),
        inmemory_cache_all=True,
        **own,
    )
    Pipeline(stages=[estimator]).save(str(tmp_path / "pipeline"))
    saved = Pipeline.load(str(tmp_path / "pipeline"))
    saved.getStages()[0].setStore(store).setBackend(ProcessBackend())

    fitted = saved.fit(xor)

    model = fitted.stages[0]
    history = model.getHistory()
    assert {name: len(values) for name, values in history.items()} == dict.fromkeys(
        ["loss", "mae", "val_loss", "val_mae"], 20
    )
    assert history["val_loss"][-1] < 0.4 < history["loss"][0]
    assert float(model.getModel().optimizer.learning_rate.numpy()) == pytest.approx(0.05)
    assert len(list((tmp_path / "compressed").iterdir())) == 2
    fitted.save(str(tmp_path / "fitted"))
    loaded = PipelineModel.load(str(tmp_path / "fitted"))
    assert isinstance(loaded.stages[0], KerasModel)
    rows = loaded.transform(xor).select("y", "y__output").distinct().collect()
    assert all(round(row["y__output"]) == row["y"] for row in rows)

    best = keras.callbacks.ModelCheckpoint("best.keras", monitor="loss", save_best_only=True)
    again = _estimator(store, epochs=2, callbacks=[_spoiler()], checkpoint_callback=best, **own).fit(xor)

    kept, spoilt = again.getHistory()["loss"]
    assert kept < history["loss"][-1] + 0.05
    assert spoilt > kept + 0.1
    assert _loss(again.getModel(), xor) < kept + 0.05
    assert store.exists(store.get_checkpoint_path("first"))


def _loss(model, frame):
    """Return the binary cross entropy of a model's output and column `y`."""
    rows = frame.select("features", "y").collect()
    labels = np.array([row["y"] for row in rows])
    found = np.asarray(model.predict_on_batch(np.array([row["features"].toArray() for row in rows]))).ravel()
    return -np.mean(labels * np.log(found) + (1 - labels) * np.log(1 - found))


def test_several_inputs_labels_weights_a_transformation_and_a_custom_loss(store, xor):
    def loss(label, output):
        return keras.ops.mean(keras.ops.square(label - output), axis=-1)

    def far_away(frame):
        frame["z"] = frame["z"] + 100
        return frame

    estimator = _estimator(
        store,
        model=_model(2),
        loss=[loss, "mse"],
        optimizer="adam",
        loss_weights=[0.7, 0.3],
        feature_cols=["features", "array"],
        label_cols=["y", "z"],
        sample_weight_col="weight",
        transformation_fn=far_away,
        use_gpu=False,
        epochs=1,
    )

    model = estimator.fit(xor).setOutputCols(["a", "b"])

    # Weights: 0.3 of the second label, 0.5 of every row. Labels are 100 or 101, outputs about 0.5.
    assert model.getHistory()["loss"] == [pytest.approx(0.3 * 0.5 * 100**2, rel=0.05)]
    found = model.transform(xor)
    assert found.columns[-2:] == ["a", "b"]
    assert found.schema["b"].dataType.simpleString() == "double"
    assert found.select("a", "b").count() == 64


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"model": object()}, "instance of tf.keras.Model or keras.Model, got object"),
        ({"loss": None}, "loss is required"),
        ({"optimizer": None}, "optimizer is required"),
        ({"transformation_removed_fields": ["y"]}, r"transformation_removed_fields names \['y'\]"),
        ({"num_proc": 2}, 'At most one of parameters "backend" and "num_proc"'),
    ],
)
def test_wrong_parameters_are_refused(store, xor, options, text):
    with pytest.raises(ValueError, match=text):
        _estimator(store, **options).fit(xor)
