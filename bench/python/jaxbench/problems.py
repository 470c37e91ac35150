"""What is trained: parameters, and the loss of this rank's share of the data. Knows nothing of Horovod."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


@dataclass(frozen=True, slots=True)
class Problem:
    """All ranks have the same parameters, each has its own data."""

    name: str
    params: Any
    loss: Callable[[Any, Any], Any]
    data: Any


class _Perceptron(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        for width in (2048, 2048):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


class _Transformer(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(4):
            x = nn.LayerNorm()(x + nn.MultiHeadDotProductAttention(4)(x))
            x = nn.LayerNorm()(x + nn.Dense(256)(nn.relu(nn.Dense(1024)(x))))
        return x


def mlp(rank: int) -> Problem:
    """Make a wide one: 5.8 M parameters for little arithmetic."""
    model, key = _Perceptron(), jax.random.key(rank)
    data = (jax.random.normal(key, (32, 784)), jax.random.randint(key, (32,), 0, 10))

    def loss(params: Any, data: Any) -> Any:
        logits = model.apply(params, data[0])
        return optax.softmax_cross_entropy_with_integer_labels(logits, data[1]).mean()

    return Problem("MLP 784-2048-2048-10", model.init(jax.random.key(1), data[0]), loss, data)


def transformer(rank: int) -> Problem:
    """Make four blocks of width 256: 3.2 M parameters."""
    model = _Transformer()
    data = jax.random.normal(jax.random.key(rank), (8, 64, 256))
    params = model.init(jax.random.key(1), data)
    return Problem(
        "transformer 4x256", params, lambda p, given: jnp.mean(jnp.square(model.apply(p, given))), data
    )
