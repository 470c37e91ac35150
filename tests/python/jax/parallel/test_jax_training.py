"""Ranks on parts of a batch train like one process on all of it: optax, Flax, Equinox, plain functions."""

from __future__ import annotations

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases import assert_same
from flax import nnx

import horovod.jax as hvd

STEPS = 4


def _params(seed):
    keys = jax.random.split(jax.random.key(seed), 2)
    return {
        "a": jax.random.normal(keys[0], (5, 7), jnp.float32),
        "b": {"w": jax.random.normal(keys[1], (7, 1), jnp.float32), "bias": jnp.zeros(1, jnp.float32)},
    }


def _predict(params, x):
    return jnp.tanh(x @ params["a"]) @ params["b"]["w"] + params["b"]["bias"]


def _loss(params, x, y):
    return jnp.mean((_predict(params, x) - y) ** 2)


def _batch(step, size):
    x = jax.random.normal(jax.random.key(100 + step), (4 * size, 5), jnp.float32)
    return x, jnp.sum(jnp.sin(x), axis=1, keepdims=True)


def _train(optimizer, params, batches, *, split=None):
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x, y):
        gradients = jax.grad(_loss)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    for x, y in batches:
        mine = slice(None) if split is None else slice(4 * split, 4 * split + 4)
        params, state = step(params, state, x[mine], y[mine])
    return params


def _assert_trees(one, other, tolerance=2e-5):
    for a, b in zip(jax.tree_util.tree_leaves(one), jax.tree_util.tree_leaves(other), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


OPTIMIZERS = {
    "plain": (optax.sgd(0.1, momentum=0.9), {}),
    "adam": (optax.adam(1e-2), {"name": "gradients"}),
    "groups": (optax.adam(1e-2), {"groups": 2}),
    "predivide": (optax.sgd(0.1), {"gradient_predivide_factor": 4.0}),
    "clipped": (optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(1e-2)), {}),
}


@pytest.mark.parametrize("case", OPTIMIZERS)
def test_parity(case, rank, size):
    optimizer, options = OPTIMIZERS[case]
    batches = [_batch(step, size) for step in range(STEPS)]
    alone = _train(optimizer, _params(0), batches)
    start = hvd.broadcast_parameters(_params(rank), root_rank=0)
    together = _train(hvd.DistributedOptimizer(optimizer, **options), start, batches, split=rank)

    _assert_trees(together, alone)


def test_compression_is_close(rank, size):
    batches = [_batch(step, size) for step in range(STEPS)]
    optimizer = hvd.DistributedOptimizer(optax.sgd(0.1), compression=hvd.Compression.bf16)

    _assert_trees(
        _train(optimizer, _params(0), batches, split=rank), _train(optax.sgd(0.1), _params(0), batches), 5e-2
    )


@pytest.mark.parametrize("is_averaged", [False, True])
def test_backward_passes(is_averaged, rank, size):
    optimizer = hvd.DistributedOptimizer(
        optax.sgd(0.1), backward_passes_per_step=2, average_aggregated_gradients=is_averaged
    )
    params = {"w": jnp.zeros(2, jnp.float32)}
    state = optimizer.init(params)
    update = jax.jit(optimizer.update)
    seen = []
    for step in range(4):
        updates, state = update({"w": jnp.full(2, rank + step + 1.0, jnp.float32)}, state, params)
        seen.append(updates["w"][0])

    mean, factor = (size + 1) / 2, 0.5 if is_averaged else 1.0
    np.testing.assert_allclose(
        np.asarray(seen), [0, -0.1 * factor * (2 * mean + 1), 0, -0.1 * factor * (2 * mean + 5)], rtol=1e-5
    )


@pytest.mark.parametrize("optimizer", [optax.adam(1e-2), optax.sgd(0.1, momentum=0.9), optax.adamw(1e-2)])
def test_sharded_optimizer(optimizer, rank, size):
    batches = [_batch(step, size) for step in range(STEPS)]
    sharded = hvd.ShardedOptimizer(optimizer, name="sharded")
    start = hvd.broadcast_parameters(_params(rank), root_rank=0)

    _assert_trees(_train(sharded, start, batches, split=rank), _train(optimizer, _params(0), batches))
    whole = sum(leaf.size for leaf in jax.tree_util.tree_leaves(_params(0)))
    parts = [leaf.size for leaf in jax.tree_util.tree_leaves(sharded.init(_params(0))) if leaf.ndim]
    assert all(part == -(-whole // size) for part in parts)


def test_optimizer_state_of_the_root(rank):
    optimizer = hvd.DistributedOptimizer(optax.adam(1e-2))
    state = optimizer.init(_params(0))
    for _ in range(rank):
        _, state = optimizer.update(_params(rank), state) if hvd.size() == 1 else (None, state)
    shifted = jax.tree_util.tree_map(lambda leaf: leaf + rank, state)

    _assert_trees(hvd.broadcast_optimizer_state(shifted, root_rank=0), state)


def test_ranks_outside_of_the_set_train_alone(process_set, rank):
    optimizer = hvd.DistributedOptimizer(optax.sgd(1.0), process_set=process_set)
    params = {"w": jnp.zeros(2, jnp.float32)}
    updates, _ = jax.jit(optimizer.update)(
        {"w": jnp.full(2, rank, jnp.float32)}, optimizer.init(params), params
    )

    inside = rank in process_set.ranks
    assert_same(updates["w"], np.full(2, -np.mean(process_set.ranks) if inside else -rank))


def test_options_are_checked():
    for options in ({"op": hvd.Sum, "gradient_predivide_factor": 2.0}, {"groups": 0}, {"groups": [[1]]}):
        with pytest.raises(ValueError):
            hvd.DistributedOptimizer(optax.sgd(0.1), **options)
    with pytest.raises(ValueError, match="backward_passes_per_step"):
        hvd.DistributedOptimizer(optax.sgd(0.1), backward_passes_per_step=0)


def _same_everywhere(tree):
    for leaf in jax.tree_util.tree_leaves(tree):
        if isinstance(leaf, jax.Array):
            assert_same(hvd.allreduce(leaf, op=hvd.Max), np.asarray(leaf))


def test_flax_linen(rank, size):
    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(nn.relu(nn.Dense(8)(x)))

    model, optimizer = Model(), hvd.DistributedOptimizer(optax.adam(1e-2))
    params = hvd.broadcast_parameters(model.init(jax.random.key(rank), jnp.ones((1, 5), jnp.float32)))
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x, y):
        loss, gradients = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, x) - y) ** 2))(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, hvd.allreduce(loss)

    losses = []
    for number in range(8):
        x, y = _batch(number % 2, size)
        params, state, loss = step(params, state, x[4 * rank : 4 * rank + 4], y[4 * rank : 4 * rank + 4])
        losses.append(float(loss))

    assert losses[-2] < losses[0]  # on the same batch
    _same_everywhere(params)


def test_flax_nnx(rank, size):
    class Model(nnx.Module):
        def __init__(self, rngs):
            self.first, self.second = nnx.Linear(5, 8, rngs=rngs), nnx.Linear(8, 1, rngs=rngs)

        def __call__(self, x):
            return self.second(nnx.relu(self.first(x)))

    model = Model(nnx.Rngs(rank))
    nnx.update(model, hvd.broadcast_parameters(nnx.state(model)))
    optimizer = nnx.Optimizer(model, hvd.DistributedOptimizer(optax.adam(1e-2)), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x, y):
        loss, gradients = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimizer.update(model, gradients)
        return loss

    for number in range(3):
        x, y = _batch(number, size)
        step(model, optimizer, x[4 * rank : 4 * rank + 4], y[4 * rank : 4 * rank + 4])

    _same_everywhere(nnx.state(model))


def test_equinox(rank, size):
    model = hvd.broadcast_parameters(eqx.nn.MLP(5, 1, 8, 2, key=jax.random.key(rank)))
    optimizer = hvd.DistributedOptimizer(optax.adam(1e-2))
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state, x, y):
        gradients = eqx.filter_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_array))
        return eqx.apply_updates(model, updates), state

    for number in range(3):
        x, y = _batch(number, size)
        model, state = step(model, state, x[4 * rank : 4 * rank + 4], y[4 * rank : 4 * rank + 4])

    _same_everywhere(eqx.filter(model, eqx.is_array))
