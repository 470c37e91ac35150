"""A gradient tape of TensorFlow 2 whose workers come and go.

horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script ./hosts.sh python tensorflow2_tape.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd


def make_batch(step: int, rank: int, size: int) -> tuple[tf.Tensor, tf.Tensor]:
    source = np.random.default_rng([step, rank, size])
    inputs = source.normal(size=(32, 8)).astype(np.float32)
    return tf.constant(inputs), tf.constant(inputs.sum(axis=1, keepdims=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds-per-step", type=float, default=0.05, help="so that there is time to watch")
    options = parser.parse_args()

    hvd.init()
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.05)

    @tf.function
    def train_one_batch(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs) - targets))
        tape = hvd.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @hvd.elastic.run
    def train(state: hvd.elastic.TensorFlowKerasState) -> None:
        while state.step < options.steps:
            loss = train_one_batch(*make_batch(state.step, hvd.rank(), hvd.size()))
            state.step += 1
            if state.step % 20 == 0 and hvd.rank() == 0:
                print(f"step {state.step}: loss {float(loss):.5f}, {hvd.size()} workers", flush=True)
            state.commit()
            time.sleep(options.seconds_per_step)

    state = hvd.elastic.TensorFlowKerasState(model, optimizer, step=0)
    train(state)
    print(f"rank {hvd.rank()} is done after {state.step} steps", flush=True)


if __name__ == "__main__":
    main()
