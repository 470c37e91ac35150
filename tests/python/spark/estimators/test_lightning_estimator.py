"""The estimator for Lightning modules on a real Spark."""

from __future__ import annotations

import math

import pytest
import torch
from estimator_data import InlineBackend, ProcessBackend, ThreeBatches, marking, stepped_weight
from packages import need

lightning = need("lightning.pytorch", "spark")

from lightning.pytorch.callbacks import Callback, EarlyStopping

import horovod.torch as hvd
from horovod.spark.lightning import TorchEstimator
from horovod.spark.torch._packing import load_checkpoint

bce = torch.nn.functional.binary_cross_entropy


class Xor(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.hidden = torch.nn.Linear(2, 8)
        self.output = torch.nn.Linear(8, 1)
        self.epochs_seen = []

    def forward(self, features):
        return torch.sigmoid(self.output(torch.tanh(self.hidden(features)))).flatten()

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        self.rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.99**epoch)
        return {"optimizer": optimizer, "lr_scheduler": self.rates}

    def training_step(self, batch, index):
        loss = bce(self(batch["features"]), batch["y"])
        self.log("train_bce", loss)
        self.log("rate", self.rates.optimizer.param_groups[0]["lr"])
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", bce(self(batch["features"]), batch["y"]), batch_size=len(batch["y"]))

    def on_train_epoch_end(self):
        self.epochs_seen.append(self.trainer.current_epoch)
        self.log("epochs_seen", float(len(self.epochs_seen)))


def _estimator(store, **options):
    given = {
        "backend": InlineBackend(),
        "store": store,
        "model": Xor(),
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


def test_a_module_is_trained_by_its_own_steps_and_trained_on(store, xor, tmp_path):
    callbacks = [EarlyStopping("val_loss", patience=25)]
    arguments = {"gradient_clip_val": 5.0}
    compression = marking(hvd.Compression.fp16, tmp_path / "compressed")
    estimator = _estimator(
        store,
        backend=ProcessBackend(),
        validation="held_out",
        callbacks=callbacks,
        trainer_args=arguments,
        gradient_compression=compression,
        terminate_on_nan=True,
        run_id="first",
    )

    model = estimator.fit(xor)

    history = model.getHistory()
    # Of two ranks; 0.99 of the rate is left after each epoch.
    assert [entry["train"]["rate"] for entry in history] == pytest.approx([0.1 * 0.99**n for n in range(25)])
    assert len(list((tmp_path / "compressed").iterdir())) == 2
    assert history[-1]["validation"]["val_loss"] < 0.4 < history[0]["train"]["train_bce"]
    rows = model.transform(xor).select("y", "y__output").distinct().collect()
    assert all(round(row["y__output"]) == row["y"] for row in rows)

    again = _estimator(store, epochs=2, run_id="first").fit(xor)

    resumed = [entry["train"] for entry in again.getHistory()]
    assert resumed[0]["train_bce"] < history[-1]["train"]["train_bce"] + 0.05
    assert [entry["rate"] for entry in resumed] == pytest.approx([0.1 * 0.99**n for n in (25, 26)])
    state = load_checkpoint(store.read(store.get_checkpoint_path("first")))
    assert state["optimizer"]["param_groups"][0]["lr"] == pytest.approx(0.1 * 0.99**27)


class Line(lightning.LightningModule):
    """One weight."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return self.weight * x

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def training_step(self, batch, index):
        return torch.nn.functional.mse_loss(self(batch["x"]), batch["y"])

    def validation_step(self, batch, index):
        self.log("x", batch["x"].mean())


class Skips(Line):
    """Leaves out a batch, as Lightning allows."""

    def training_step(self, batch, index):
        return super().training_step(batch, index) if index != 1 else None


def _fit_line(spark, store, **options):
    frame = spark.createDataFrame([(1.0, 1.0)] * 6, ["x", "y"])
    frame.write.parquet(store.get_train_data_path())
    frame.write.parquet(store.get_val_data_path())
    given = {"model": Line(), "data_module": ThreeBatches, "input_shapes": None, "feature_cols": ["x"]}
    return _estimator(store, batch_size=2, **{**given, **options}).fit_on_parquet()


def test_gradients_of_several_batches_and_what_is_logged_are_averaged_as_lightning_does(spark, store):
    """Three batches an epoch in groups of two: the third has a step of its own, and is halved, too."""
    model = _fit_line(spark, store, trainer_args={"accumulate_grad_batches": 2}, epochs=2)

    wanted = stepped_weight([(0, 1), (2,)] * 2, 0.01, mean_of=2)
    assert model.getModel().weight.item() == pytest.approx(wanted, rel=1e-5)
    # 1.5 of two rows, 3 of one.
    assert [entry["validation"]["x"] for entry in model.getHistory()] == [2.0, 2.0]


def test_a_step_without_a_loss_is_an_error_that_says_why(spark, store):
    with pytest.raises(
        ValueError, match="training_step returned None for batch 1 of epoch 0: our loop cannot"
    ):
        _fit_line(spark, store, model=Skips(), epochs=1)


class Renamed(Xor):
    """Gets its features in a column that the transformation has made; has a loss of NaN in its last step."""

    def training_step(self, batch, index):
        assert sorted(batch) == ["doubled", "y"]
        loss = super().training_step({"features": batch["doubled"], "y": batch["y"]}, index)
        return loss * float("nan") if index == 7 else loss


def _renaming(frame):
    frame["doubled"] = frame["features"].map(lambda values: 2 * values)
    return frame


def test_a_loss_that_is_not_a_number_ends_the_fit_if_it_is_asked_to(store, xor):
    options = {
        "model": Renamed(),
        "transformation_fn": _renaming,
        "transformation_edit_fields": [("doubled", "float32", (2,), False)],
        "transformation_removed_fields": ["features"],
        "epochs": 1,
    }

    with pytest.raises(ValueError, match=r"the loss is nan in step 7 \(terminate_on_nan\)"):
        _estimator(store, terminate_on_nan=True, **options).fit(xor)

    assert math.isnan(_estimator(store, **options).fit(xor).getHistory()[0]["train"]["loss"])


class CountsEpochs(Callback):
    """Written for Lightning 1, where both kinds of epochs called on_epoch_start and on_epoch_end."""

    def __init__(self):
        self.calls = []

    def on_epoch_start(self, trainer, module):
        self.calls.append("start")

    def on_epoch_end(self, trainer, module):
        self.calls.append("end")

    def on_train_end(self, trainer, module):
        assert self.calls == ["start", "start", "end", "end"] * 2


def test_what_lightning_1_called_and_took_is_called_and_taken(store, xor):
    options = {"callbacks": [CountsEpochs()], "trainer_args": {"num_sanity_val_steps": 0}}

    model = _estimator(store, validation="held_out", epochs=2, **options).fit(xor)

    assert len(model.getHistory()) == 2


def test_what_changes_no_training_is_left_out(store, xor, caplog):
    model = _estimator(store, profiler="simple", num_gpus=0, epochs=1).fit(xor)

    assert len(model.getHistory()) == 1
    assert "profiler='simple' is left out" in caplog.text


def test_a_plain_module_is_wrapped(store, xor):
    plain = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.01)

    model = _estimator(
        store, model=plain, optimizer=optimizer, loss=bce, sample_weight_col="weight", epochs=1
    ).fit(xor)

    assert model.getHistory()[0]["train"]["train_loss"] < 1


def test_labels_of_a_plain_module_get_their_shapes(store, xor):
    plain = torch.nn.Linear(2, 2)

    def loss(output, label):
        assert (output.shape, label.shape) == ((8, 2), (8, 2, 1))
        return torch.nn.functional.mse_loss(output, label[..., 0])

    model = _estimator(
        store,
        model=plain,
        optimizer=torch.optim.SGD(plain.parameters(), lr=0.01),
        loss=loss,
        label_cols=["array"],
        label_shapes=[[-1, 2, 1]],
        epochs=1,
    ).fit(xor)

    assert model.getHistory()[0]["train"]["loss"] > 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"loss": bce}, "its own optimizer and loss"),
        ({"trainer_args": {"max_time": 1}}, r"trainer_args \['max_time'\] are not known"),
        ({"trainer_args": {"accumulate_grad_batches": {0: 2}}}, r"must be a positive number, got \{0: 2\}"),
        ({"model": torch.nn.Linear(2, 1)}, "needs optimizer"),
    ],
)
def test_what_our_loop_does_not_have_is_refused(store, xor, options, text):
    with pytest.raises(ValueError, match=text):
        _estimator(store, **options).fit(xor)
