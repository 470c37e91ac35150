"""Linear regression with JAX whose workers come and go.

horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script ./hosts.sh python jax_regression.py
"""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import horovod.jax as hvd


def make_data(count: int) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(0)
    inputs = source.normal(size=(count, 8)).astype(np.float32)
    return inputs, inputs.sum(axis=1)


def loss_of(params: dict, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    return jnp.mean((inputs @ params["weights"] + params["bias"] - targets) ** 2)


@jax.jit
def step(params: dict, inputs: jax.Array, targets: jax.Array) -> tuple[dict, jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(params, inputs, targets)
    gradients = hvd.allreduce(gradients)
    return jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, params, gradients), loss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seconds-per-step", type=float, default=0.05, help="so that there is time to watch")
    options = parser.parse_args()

    hvd.init()
    inputs, targets = make_data(options.samples)

    @hvd.elastic.run
    def train(state: hvd.elastic.JaxState) -> None:
        while state.indices.epoch < options.epochs:
            left = list(state.indices)
            for begin in range(0, len(left), options.batch_size):
                batch = left[begin : begin + options.batch_size]
                state.params, loss = step(state.params, inputs[batch], targets[batch])
                state.indices.record_batch(len(batch))
                state.commit()
                time.sleep(options.seconds_per_step)
            if hvd.rank() == 0:
                print(
                    f"epoch {state.indices.epoch}: loss {float(loss):.5f}, {hvd.size()} workers", flush=True
                )
            state.indices.set_epoch(state.indices.epoch + 1)
            state.commit()

    params = {"weights": jnp.zeros(8), "bias": jnp.zeros(())}
    state = hvd.elastic.JaxState(
        params=params, indices=hvd.elastic.ElasticIndices(options.samples, drop_remainder=True)
    )
    train(state)
    print(f"rank {hvd.rank()} is done after {state.indices.epoch} epochs", flush=True)


if __name__ == "__main__":
    main()
