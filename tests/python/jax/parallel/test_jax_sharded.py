"""ShardedOptimizer does what DistributedOptimizer does: mixed dtypes, compression, process sets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from cases import assert_same

import horovod.jax as hvd

STEPS = 3
# Factors that are powers of two: with gradients that are small integers, every dtype computes exactly.
EXACT = optax.sgd(0.5, momentum=0.5)


def _params():
    """Of four dtypes, in leaves whose sizes do not divide by any number of ranks, and a scalar."""
    return {
        "float32": [np.ones((3, 3), np.float32), np.zeros(2, np.float32)],
        "half": {"w": np.ones((7, 1), np.float16), "scale": np.ones((), jnp.bfloat16)},
        "wide": np.ones(5, np.float64),
        "more": np.zeros((2, 3), jnp.bfloat16),
    }


ELEMENTS = {"float32": 11, "float16": 7, "bfloat16": 7, "float64": 5}


def _gradients(ranks):
    """Return the sum of the gradients of ranks, of all steps in the first dimension."""

    def one(number, leaf):
        steps = np.arange(STEPS).reshape((STEPS,) + (1,) * leaf.ndim)
        places = np.arange(leaf.size).reshape(leaf.shape) + steps + number
        return sum((places + 3 * rank) % 5 - 2.0 for rank in ranks).astype(leaf.dtype)

    leaves, tree = jax.tree_util.tree_flatten(_params())
    return jax.tree_util.tree_unflatten(tree, [one(number, leaf) for number, leaf in enumerate(leaves)])


def _trained(optimizers, gradients, *, with_params=True):
    """Return parameters and state after some steps of each optimizer; one program for all of them."""

    def train(optimizer, gradients, params):
        def step(carry, gradients):
            params, state = carry
            updates, state = optimizer.update(gradients, state, params if with_params else None)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (params, optimizer.init(params)), gradients)[0]

    @jax.jit
    def run(several, params):
        return [train(one, its, params) for one, its in zip(optimizers, several, strict=True)]

    return run(gradients, _params())


def _assert_trees(one, other, tolerance=0.0):
    assert jax.tree_util.tree_structure(one) == jax.tree_util.tree_structure(other)
    for a, b in zip(jax.tree_util.tree_leaves(one), jax.tree_util.tree_leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=tolerance, atol=tolerance
        )


def _sizes(state):
    return {leaf.dtype.name: leaf.size for leaf in jax.tree_util.tree_leaves(state)}


def test_mixed_dtypes(rank, size):
    optimizers = (
        hvd.ShardedOptimizer(EXACT, op=hvd.Sum, name="mixed"),
        hvd.DistributedOptimizer(EXACT, op=hvd.Sum),
        EXACT,
    )
    mine, whole, alone = _trained(
        optimizers, (_gradients([rank]), _gradients([rank]), _gradients(range(size)))
    )

    _assert_trees(mine[0], whole[0])
    _assert_trees(mine[0], alone[0])
    assert _sizes(mine[1]) == {dtype: -(-count // size) for dtype, count in ELEMENTS.items()}


def test_gradients_of_another_dtype_than_the_parameters(rank):
    optimizer = optax.adamw(2.0**-4)
    gradients = {**_gradients([rank]), "wide": _gradients([rank])["wide"].astype(np.float32)}
    gradients["float32"][0] = gradients["float32"][0].astype(jnp.bfloat16)
    mine, whole = _trained(
        (hvd.ShardedOptimizer(optimizer), hvd.DistributedOptimizer(optimizer)), (gradients, gradients)
    )

    _assert_trees(mine[0], whole[0], tolerance=2e-2)


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16])
def test_compression(compression, rank):
    options = {"op": hvd.Sum, "compression": compression}
    gradients = _gradients([rank])
    mine, whole = _trained(
        (hvd.ShardedOptimizer(EXACT, **options), hvd.DistributedOptimizer(EXACT, **options)),
        (gradients, gradients),
    )

    _assert_trees(mine[0], whole[0])


@pytest.mark.disagreement
@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16])
def test_compressed_rows_lose_what_the_dtype_cannot_hold(compression, size):
    fine = jnp.full((size, 2), 1 + 2.0**-13, jnp.float32)  # one bit more than either has
    tree = {"f": fine, "d": fine.astype(jnp.float64), "n": jnp.ones((size, 1), jnp.int32)}

    for way in (hvd.reducescatter, jax.jit(hvd.reducescatter, static_argnames=("op", "compression"))):
        result = way(tree, op=hvd.Sum, compression=compression)

        assert result["f"].tolist() == [[size, size]]
        assert result["d"].tolist() == [[size * (1 + 2.0**-13)] * 2]
        assert result["f"].dtype == jnp.float32
        assert_same(result["n"], np.full((1, 1), size), "int32")


def test_ranks_of_a_set_share_and_the_others_train_alone(process_set, rank):
    ranks = process_set.ranks if rank in process_set.ranks else [rank]
    options = {"op": hvd.Sum, "process_set": process_set}
    mine, whole, alone = _trained(
        (hvd.ShardedOptimizer(EXACT, **options), hvd.DistributedOptimizer(EXACT, **options), EXACT),
        (_gradients([rank]), _gradients([rank]), _gradients(ranks)),
        with_params=False,
    )

    _assert_trees(mine[0], whole[0])
    _assert_trees(mine[0], alone[0])
    assert _sizes(mine[1])["float32"] == -(-ELEMENTS["float32"] // len(ranks))


def test_a_set_that_is_not_registered():
    optimizer = hvd.ShardedOptimizer(EXACT, process_set=hvd.ProcessSet([0]))

    with pytest.raises(ValueError, match="not registered"):
        optimizer.init(_params())


def test_a_tree_without_arrays():
    optimizer = hvd.ShardedOptimizer(EXACT)

    updates, _ = optimizer.update({"a": None}, optimizer.init({"a": None}))

    assert updates == {"a": None}


def test_what_would_give_every_rank_the_part_of_the_root_is_refused():
    optimizer = hvd.ShardedOptimizer(optax.adam(1e-3))
    state = optimizer.init(_params())

    for tree in (state, {"params": _params(), "state": [state]}):
        with pytest.raises(ValueError, match="every rank has its own part"):
            hvd.broadcast_optimizer_state(tree)
        with pytest.raises(ValueError, match="use DistributedOptimizer in elastic training"):
            hvd.elastic.JaxState(state=tree)
    kept = hvd.elastic.JaxState(state=_params())
    kept.state = state
    with pytest.raises(ValueError, match="every rank has its own part"):
        kept.save()
