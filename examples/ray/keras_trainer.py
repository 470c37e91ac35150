"""Trains a small network with HorovodTrainer and the fit of Keras.

python examples/ray/keras_trainer.py --workers 2
"""

from __future__ import annotations

import argparse
from typing import Any

import keras
import numpy as np
import ray.train
from ray.train import ScalingConfig

import horovod.keras as hvd
from horovod.ray import HorovodTrainer


class Report(keras.callbacks.Callback):  # type: ignore[misc]
    """Tells Ray what each epoch gave; all workers report, Ray keeps what rank 0 says."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        ray.train.report({"epoch": epoch, **{name: float(value) for name, value in (logs or {}).items()}})


def train_func(config: dict[str, Any]) -> None:
    hvd.init()
    x = np.linspace(0, 1, 512, dtype=np.float32)[hvd.rank() :: hvd.size(), None]
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(config["lr"])), loss="mse")
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        Report(),
    ]
    model.fit(x, 3 * x + 1, batch_size=32, epochs=config["epochs"], verbose=0, callbacks=callbacks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()

    trainer = HorovodTrainer(
        train_func,
        train_loop_config={"lr": 0.1, "epochs": arguments.epochs},
        scaling_config=ScalingConfig(use_gpu=False, num_workers=arguments.workers),
    )
    result = trainer.fit()
    print(f"epoch {result.metrics['epoch']}: loss {result.metrics['loss']:.4f}")


if __name__ == "__main__":
    main()
