"""A training loop of one's own: tf.GradientTape in a tf.function.

horovodrun -np 2 python examples/tensorflow/gradient_tape.py
"""

from __future__ import annotations

import argparse

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()

    hvd.init()
    # Each worker sees data of its own.
    random = np.random.RandomState(hvd.rank())
    x = random.rand(1024, 16).astype(np.float32)
    y = np.sin(x.sum(axis=1, keepdims=True))
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().shuffle(1024).batch(32)

    model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
    model.build([None, 16])
    optimizer = tf.keras.optimizers.Adam(0.001 * hvd.size())
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(images: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(images, training=True) - targets))
        # Gradients of this tape are averages over all workers.
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    # All workers begin with the weights of rank 0.
    hvd.broadcast_variables(model.variables, root_rank=0)
    hvd.broadcast_variables(optimizer.variables, root_rank=0)

    for number, (images, targets) in enumerate(data.take(arguments.steps)):
        loss = step(images, targets)
        if number % 50 == 0:
            mean = hvd.allreduce(loss)
            if hvd.rank() == 0:
                print(f"step {number}: loss {float(mean):.4f}")
    if hvd.rank() == 0:
        print("done")


if __name__ == "__main__":
    main()
