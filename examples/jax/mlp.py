"""A multilayer perceptron of plain functions learns the sine of a sum.

horovodrun -np 2 python examples/jax/mlp.py
"""

from __future__ import annotations

import argparse
from typing import Any

import jax
import jax.numpy as jnp

import horovod.jax as hvd

Params = list[tuple[jax.Array, jax.Array]]


def make_params(key: jax.Array, sizes: tuple[int, ...] = (8, 64, 64, 1)) -> Params:
    pairs = zip(sizes, sizes[1:], jax.random.split(key, len(sizes) - 1), strict=False)
    return [(jax.random.normal(k, (n, m)) / jnp.sqrt(n), jnp.zeros(m)) for n, m, k in pairs]


def loss_of(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
    for weights, bias in params[:-1]:
        x = jnp.tanh(x @ weights + bias)
    weights, bias = params[-1]
    return jnp.mean((x @ weights + bias - y) ** 2)


@jax.jit
def step(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, Any]:
    loss, gradients = hvd.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), hvd.metric_average(loss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64, help="of each rank")
    arguments = parser.parse_args()
    hvd.init()
    # Every rank starts with other numbers; the first one's count.
    params = hvd.broadcast_parameters(make_params(jax.random.key(hvd.rank())), root_rank=0)
    for number in range(arguments.steps):
        key = jax.random.fold_in(jax.random.key(1 + number), hvd.rank())  # each rank has its own data
        x = jax.random.normal(key, (arguments.batch, 8))
        params, loss = step(params, x, jnp.sin(x.sum(axis=1, keepdims=True)))
        if hvd.rank() == 0 and number % 20 == 0:
            print(f"step {number}: loss {float(loss):.4f}")
    if hvd.rank() == 0:
        print("done")


if __name__ == "__main__":
    main()
