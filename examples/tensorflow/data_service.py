"""Training on data that other processes prepare, by the tf.data service.

The compute job, on as many hosts as the preparation needs, and the training job find each other by a file:

horovodrun -np 2 python -m horovod.tensorflow.data.compute_worker compute.json &
horovodrun -np 2 python examples/tensorflow/data_service.py compute.json
"""

from __future__ import annotations

import argparse

import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.tensorflow.data.compute_service import TfDataServiceConfig, send_to_data_service

FEATURES = 8


def prepare(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Stand in for reading and augmenting pictures; runs in the compute job."""
    x = tf.random.stateless_normal([FEATURES], seed=tf.stack([number, 1]))
    return x, tf.reduce_sum(x, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("configfile")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()

    hvd.init()
    config = TfDataServiceConfig.read(arguments.configfile, wait_for_file_creation=True)

    # One dataset for all workers: every element goes to one of them.
    data = tf.data.Dataset.range(1000).map(prepare).batch(16, drop_remainder=True).repeat()
    data = send_to_data_service(data, config, hvd.rank(), hvd.size(), reuse_dataset=True)

    weights = tf.Variable(tf.random.normal([FEATURES, 1], seed=hvd.rank()))
    hvd.broadcast_variables([weights], root_rank=0)

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights - y))
        tape = hvd.DistributedGradientTape(tape)
        (gradient,) = tape.gradient(loss, [weights])
        weights.assign_sub(0.05 * gradient)
        return loss

    for number, (x, y) in enumerate(data.take(arguments.steps)):
        loss = step(x, y)
        if number % 50 == 0 and hvd.rank() == 0:
            print(f"step {number}: loss {float(loss):.4f}")

    hvd.barrier()  # nobody reads any more
    if hvd.rank() == 0:
        config.compute_client().shutdown()
        print("done")


if __name__ == "__main__":
    main()
