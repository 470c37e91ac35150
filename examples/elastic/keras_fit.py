"""`fit` of Keras 3, on any of its backends, whose workers come and go.

KERAS_BACKEND=torch horovodrun -np 2 --min-np 1 --host-discovery-script ./hosts.sh python keras_fit.py
"""

from __future__ import annotations

import argparse

import keras
import numpy as np

import horovod.keras as hvd


def make_data(count: int) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(0)
    inputs = source.normal(size=(count, 8)).astype(np.float32)
    return inputs, inputs.sum(axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()

    hvd.init()
    keras.utils.set_random_seed(1)
    inputs, targets = make_data(options.samples)
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.02)), "mse")

    @hvd.elastic.run
    def train(state: hvd.elastic.KerasState) -> None:
        # The data of this rank in this world, and the epochs that are left.
        mine = slice(hvd.rank(), None, hvd.size())
        model.fit(
            inputs[mine],
            targets[mine],
            batch_size=options.batch_size,
            steps_per_epoch=len(inputs) // hvd.size() // options.batch_size,
            epochs=options.epochs - state.epoch,
            verbose=2 if hvd.rank() == 0 else 0,
            callbacks=[
                hvd.elastic.UpdateEpochStateCallback(state),
                hvd.elastic.CommitStateCallback(state, batches_per_commit=5),
            ],
        )

    state = hvd.elastic.KerasState(model, epoch=0)
    train(state)
    print(f"rank {hvd.rank()} is done after {state.epoch} epochs", flush=True)


if __name__ == "__main__":
    main()
