"""The estimator for Lightning modules on a real Spark."""

from __future__ import annotations

import pytest
import torch
from estimator_data import InlineBackend, ProcessBackend

lightning = pytest.importorskip("lightning.pytorch")

from lightning.pytorch.callbacks import EarlyStopping

from horovod.spark.lightning import TorchEstimator

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
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 100)}

    def training_step(self, batch, index):
        loss = bce(self(batch["features"]), batch["y"])
        self.log("train_bce", loss)
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


def test_a_module_is_trained_by_its_own_steps(store, xor):
    callbacks = [EarlyStopping("val_loss", patience=25)]
    arguments = {"gradient_clip_val": 5.0}
    estimator = _estimator(
        store, backend=ProcessBackend(), validation="held_out", callbacks=callbacks, trainer_args=arguments
    )

    model = estimator.fit(xor)

    history = model.getHistory()
    assert history[-1]["validation"]["val_loss"] < 0.4 < history[0]["train"]["train_bce"]
    rows = model.transform(xor).select("y", "y__output").distinct().collect()
    assert all(round(row["y__output"]) == row["y"] for row in rows)


def test_a_plain_module_is_wrapped(store, xor):
    plain = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.01)

    model = _estimator(
        store, model=plain, optimizer=optimizer, loss=bce, sample_weight_col="weight", epochs=1
    ).fit(xor)

    assert model.getHistory()[0]["train"]["train_loss"] < 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"loss": bce}, "its own optimizer and loss"),
        ({"trainer_args": {"max_time": 1}}, r"trainer_args \['max_time'\] are not known"),
        ({"profiler": "simple"}, "profiler must be None"),
        ({"model": torch.nn.Linear(2, 1)}, "needs optimizer"),
    ],
)
def test_what_our_loop_does_not_have_is_refused(store, xor, options, text):
    with pytest.raises(ValueError, match=text):
        _estimator(store, **options).fit(xor)
