"""Images per second on made-up data, and how well that scales.

horovodrun -np 2 python examples/tensorflow/synthetic_benchmark.py --small
"""

from __future__ import annotations

import argparse
import timeit

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd


def make_model(*, small: bool) -> tuple[tf.keras.Model, int]:
    if not small:
        return tf.keras.applications.ResNet50(weights=None), 224
    layers = [
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(1000, activation="softmax"),
    ]
    model = tf.keras.Sequential(layers)
    model.build([None, 32, 32, 3])
    return model, 32


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="a small network instead of ResNet-50")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--batches", type=int, default=10, help="per measurement")
    parser.add_argument("--iterations", type=int, default=10, help="measurements")
    parser.add_argument("--fp16", action="store_true", help="gradients travel in 16 bits")
    arguments = parser.parse_args()

    hvd.init()
    model, edge = make_model(small=arguments.small)
    optimizer = tf.keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    images = tf.random.uniform([arguments.batch_size, edge, edge, 3])
    labels = tf.random.uniform([arguments.batch_size], 0, 999, dtype=tf.int64)
    compression = hvd.Compression.fp16 if arguments.fp16 else hvd.Compression.none

    def step(*, together: bool) -> None:
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, predictions))
        if together:
            tape = hvd.DistributedGradientTape(tape, compression=compression)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    def measure(*, together: bool) -> list[float]:
        compiled = tf.function(lambda: step(together=together))
        compiled()
        rates = []
        for _ in range(arguments.iterations):
            hvd.allreduce(tf.zeros([1]))  # begin together
            seconds = timeit.timeit(compiled, number=arguments.batches)
            rates.append(arguments.batch_size * arguments.batches / seconds)
        return rates

    hvd.broadcast_variables(model.variables, root_rank=0)
    alone = measure(together=False)
    rates = measure(together=True)
    mean_alone = float(hvd.allreduce(tf.constant(np.mean(alone))))
    mean = float(hvd.allreduce(tf.constant(np.mean(rates))))
    if hvd.rank() == 0:
        spread = 1.96 * float(np.std(rates))
        print(f"images/s per worker: {mean:.1f} +- {spread:.1f}")
        print(f"images/s of {hvd.size()} workers: {hvd.size() * mean:.1f} +- {hvd.size() * spread:.1f}")
        print(f"of the speed without communication: {100 * mean / mean_alone:.0f} %")
        print("done")


if __name__ == "__main__":
    main()
