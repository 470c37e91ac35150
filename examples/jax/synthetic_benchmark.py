"""Images per second of a convolutional network, and what is left of a single process's speed.

horovodrun -np 2 python examples/jax/synthetic_benchmark.py

Every rank first trains alone, all at the same time, then together: efficiency is the ratio of the two.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import horovod.jax as hvd


class Network(nn.Module):
    """Convolutions that double their channels and halve the picture."""

    channels: tuple[int, ...]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for count in self.channels:
            x = nn.relu(nn.GroupNorm(4)(nn.Conv(count, (3, 3), strides=2)(x)))
        return nn.Dense(100)(x.mean(axis=(1, 2)))


def measure(model: Network, optimizer: Any, pictures: jax.Array, arguments: argparse.Namespace) -> float:
    """Return the images per second of this rank."""
    labels = jnp.arange(pictures.shape[0]) % 100
    params = hvd.broadcast_parameters(model.init(jax.random.key(0), pictures[:1]))
    state = optimizer.init(params)

    def step(params: Any, state: Any) -> tuple[Any, Any]:
        def loss_of(params: Any) -> jax.Array:
            logits = model.apply(params, pictures)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        updates, state = optimizer.update(jax.grad(loss_of)(params), state, params)
        return optax.apply_updates(params, updates), state

    run = jax.jit(step, donate_argnums=(0, 1))
    params, state = jax.block_until_ready(run(params, state))
    rates = []
    for _ in range(arguments.iterations):
        hvd.barrier()
        start = time.perf_counter()
        for _ in range(arguments.batches):
            params, state = run(params, state)
        jax.block_until_ready(params)
        rates.append(arguments.batches * pictures.shape[0] / (time.perf_counter() - start))
    return sorted(rates)[len(rates) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--batches", type=int, default=5, help="in each iteration")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--compress", action="store_true", help="send gradients as float16")
    arguments = parser.parse_args()
    hvd.init()
    side, channels = (32, (8, 16)) if arguments.small else (128, (32, 64, 128, 256))
    compression = hvd.Compression.fp16 if arguments.compress else hvd.Compression.none
    model = Network(channels)
    pictures = jax.random.normal(jax.random.key(hvd.rank()), (arguments.batch, side, side, 3))
    plain = optax.sgd(0.01)
    alone = measure(model, plain, pictures, arguments)
    together = measure(model, hvd.DistributedOptimizer(plain, compression=compression), pictures, arguments)
    alone, together = hvd.metric_average((alone, together))
    if hvd.rank() == 0:
        print(f"images/s per rank: {together:.1f}, without communication {alone:.1f}")
        print(f"images/s on {hvd.size()} ranks: {together * hvd.size():.1f}")
        print(f"scaling efficiency: {100 * together / alone:.1f} %")
        print("done")


if __name__ == "__main__":
    main()
