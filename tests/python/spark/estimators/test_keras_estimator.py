"""KerasEstimator on a real Spark, with Keras 3 on PyTorch, or on TensorFlow where that is installed."""

from __future__ import annotations

import pytest
from estimator_data import InlineBackend, ProcessBackend

keras = pytest.importorskip("keras")

from horovod.spark.keras import KerasEstimator, KerasModel


def _model(inputs=1):
    keras.utils.set_random_seed(1)
    features = [keras.Input((2,)) for _ in range(inputs)]
    joined = features[0] if inputs == 1 else keras.layers.Concatenate()(features)
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


def test_a_fitted_model_predicts_is_saved_and_trained_on(store, xor, tmp_path):
    estimator = _estimator(
        store, backend=ProcessBackend(), validation="held_out", metrics=["mae"], run_id="first"
    )

    model = estimator.fit(xor)

    history = model.getHistory()
    assert {name: len(values) for name, values in history.items()} == dict.fromkeys(
        ["loss", "mae", "val_loss", "val_mae"], 20
    )
    assert history["val_loss"][-1] < 0.4 < history["loss"][0]
    assert float(model.getModel().optimizer.learning_rate.numpy()) == pytest.approx(0.05)
    model.save(str(tmp_path / "model"))
    loaded = KerasModel.load(str(tmp_path / "model"))
    rows = loaded.transform(xor).select("y", "y__output").distinct().collect()
    assert all(round(row["y__output"]) == row["y"] for row in rows)

    again = _estimator(store, epochs=1, run_id="first").fit(xor)

    assert again.getHistory()["loss"][0] < history["loss"][-1] + 0.05
    assert store.exists(store.get_checkpoint_path("first"))


def test_several_inputs_labels_weights_and_a_custom_loss(store, xor):
    def loss(label, output):
        return keras.ops.mean(keras.ops.square(label - output), axis=-1)

    estimator = _estimator(
        store,
        model=_model(2),
        loss=[loss, "mse"],
        optimizer="adam",
        loss_weights=[0.7, 0.3],
        feature_cols=["features", "array"],
        label_cols=["y", "z"],
        sample_weight_col="weight",
        epochs=1,
    )

    model = estimator.fit(xor).setOutputCols(["a", "b"])

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
        ({"num_proc": 2}, 'At most one of parameters "backend" and "num_proc"'),
    ],
)
def test_wrong_parameters_are_refused(store, xor, options, text):
    with pytest.raises(ValueError, match=text):
        _estimator(store, **options).fit(xor)
