"""A small transformer of Flax learns to continue sequences, with an optax optimizer.

horovodrun -np 2 python examples/jax/transformer.py [--sharded] [--compress]
"""

from __future__ import annotations

import argparse
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import horovod.jax as hvd

VOCABULARY = 64


class Block(nn.Module):
    """Attention and a perceptron, each around a shortcut."""

    heads: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        mask = nn.make_causal_mask(jnp.ones(x.shape[:2]))
        x = x + nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=mask)
        inner = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(inner)


class Transformer(nn.Module):
    """Predicts the next token."""

    layers: int
    width: int

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        places = self.param("places", nn.initializers.normal(0.02), (tokens.shape[1], self.width))
        x = nn.Embed(VOCABULARY, self.width)(tokens) + places
        for _ in range(self.layers):
            x = Block(heads=4)(x)
        return nn.Dense(VOCABULARY)(nn.LayerNorm()(x))


def sequences(key: jax.Array, count: int, length: int) -> jax.Array:
    """Make sequences that count up by a step of their own."""
    start, stride = jax.random.randint(key, (2, count, 1), 0, 8)
    return (start + stride * jnp.arange(length + 1)) % VOCABULARY


def make_step(model: Transformer, optimizer: Any) -> Any:
    def loss_of(params: Any, tokens: jax.Array) -> jax.Array:
        logits = model.apply(params, tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    def step(params: Any, state: Any, tokens: jax.Array) -> tuple[Any, Any, jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(params, tokens)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, hvd.allreduce(loss)

    return jax.jit(step, donate_argnums=(0, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=8, help="of each rank")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--sharded", action="store_true", help="divide the optimizer's state among the ranks")
    parser.add_argument("--compress", action="store_true", help="send gradients as bfloat16")
    arguments = parser.parse_args()
    hvd.init()
    length, width, layers = (16, 32, 1) if arguments.small else (64, 128, 2)
    compression = hvd.Compression.bf16 if arguments.compress else hvd.Compression.none
    wrap = hvd.ShardedOptimizer if arguments.sharded else hvd.DistributedOptimizer
    optimizer = wrap(optax.adamw(1e-3 * hvd.size()), compression=compression)

    model = Transformer(layers, width)
    params = model.init(jax.random.key(hvd.rank()), jnp.zeros((1, length), jnp.int32))
    params = hvd.broadcast_parameters(params, root_rank=0)
    state = optimizer.init(params)
    step = make_step(model, optimizer)
    for number in range(arguments.steps):
        key = jax.random.fold_in(jax.random.key(number), hvd.rank())
        params, state, loss = step(params, state, sequences(key, arguments.batch, length))
        if hvd.rank() == 0 and number % 10 == 0:
            print(f"step {number}: loss {float(loss):.4f}")
    if hvd.rank() == 0:
        print("done")


if __name__ == "__main__":
    main()
