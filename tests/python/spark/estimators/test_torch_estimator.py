"""TorchEstimator on a real Spark."""

from __future__ import annotations

import torch
from estimator_data import ProcessBackend

from horovod.spark.torch import TorchEstimator


class Xor(torch.nn.Module):
    def __init__(self, outputs=1):
        super().__init__()
        self.hidden = torch.nn.Linear(2, 8)
        self.output = torch.nn.Linear(8, outputs)

    def forward(self, features):
        return torch.sigmoid(self.output(torch.tanh(self.hidden(features))))


def _estimator(store, **options):
    torch.manual_seed(1)
    model = Xor()
    given = {
        "backend": ProcessBackend(),
        "store": store,
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters(), lr=0.05),
        "loss": torch.nn.functional.binary_cross_entropy,
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


def test_a_fitted_model_predicts(store, xor):
    model = _estimator(store, validation=0.25, metrics=[torch.nn.functional.l1_loss]).fit(xor)

    history = model.getHistory()
    assert [entry["epoch"] for entry in history] == list(range(25))
    assert history[-1]["validation"]["loss"] < 0.3 < history[0]["train"]["loss"]
    assert history[-1]["validation"]["all_metrics"][0]["group_0_y"] < 0.3
    rows = model.transform(xor).select("y", "y__output").distinct().collect()
    assert all(abs(row["y"] - row["y__output"]) < 0.3 for row in rows)
