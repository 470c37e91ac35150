"""Keras `fit` with every callback, on any backend of Keras 3.

KERAS_BACKEND=jax horovodrun -np 2 python examples/keras/fit.py
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import keras
import numpy as np

import horovod.keras as hvd

CLASSES = 4


def pictures(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise with one bright quarter, which is the class."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, CLASSES, count)
    images = random.rand(count, 12, 12, 1).astype("float32")
    for image, label in zip(images, labels, strict=True):
        row, column = 6 * (label // 2), 6 * (label % 2)
        image[row : row + 6, column : column + 6] += 0.5
    return images, labels


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    arguments = parser.parse_args()

    hvd.init()
    # Each worker has its own part of the data, and starts from weights of its own.
    keras.utils.set_random_seed(hvd.rank())
    x, y = pictures(1 + hvd.rank(), 512)

    model = keras.Sequential(
        [
            keras.layers.Input([12, 12, 1]),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    rate = 0.02 * hvd.size()
    model.compile(
        optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam(rate)),
        loss=keras.losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy"],
    )
    callbacks = [
        # All workers begin with the weights of rank 0.
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        # Before callbacks that read metrics.
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=1, verbose=1),
        hvd.callbacks.LearningRateScheduleCallback(initial_lr=rate, multiplier=0.5, start_epoch=1),
    ]
    if hvd.rank() == 0:
        folder = os.environ.get("HVD_EXAMPLE_FOLDER") or tempfile.mkdtemp(prefix="hvd-model-")
        best = hvd.callbacks.BestModelCheckpoint(monitor="loss")
        best.filepath = str(Path(folder) / "best.keras")
        callbacks.append(best)

    history = model.fit(
        x,
        y,
        batch_size=32,
        epochs=arguments.epochs,
        callbacks=callbacks,
        verbose=2 if hvd.rank() == 0 else 0,
    )
    if hvd.rank() == 0:
        print(f"{keras.backend.backend()}: accuracy {history.history['accuracy'][-1]:.2f}")
        print("done")


if __name__ == "__main__":
    main()
