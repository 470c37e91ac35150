"""Trains a small network with HorovodTrainer and TensorFlow, with a tape of its own.

python examples/ray/tensorflow_trainer.py --workers 2
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import ray.train
import tensorflow as tf
from ray.train import ScalingConfig

import horovod.tensorflow as hvd
from horovod.ray import HorovodTrainer


def train_func(config: dict[str, Any]) -> None:
    hvd.init()
    x = np.linspace(0, 1, 512, dtype=np.float32)[hvd.rank() :: hvd.size(), None]
    model = tf.keras.Sequential([tf.keras.layers.Input((1,)), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(config["lr"])
    hvd.broadcast_variables(model.variables, root_rank=0)
    for epoch in range(config["epochs"]):
        losses = []
        for start in range(0, len(x), 32):
            batch = tf.constant(x[start : start + 32])
            with tf.GradientTape() as plain:
                loss = tf.reduce_mean((model(batch, training=True) - (3 * batch + 1)) ** 2)
            tape = hvd.DistributedGradientTape(plain)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            losses.append(loss)
        mean = hvd.allreduce(tf.reduce_mean(losses), name="loss")
        ray.train.report({"epoch": epoch, "loss": float(mean)})


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
