"""JaxState through resets in which every rank stays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import horovod.jax as hvd
from horovod.common.exceptions import HorovodInternalError

LOST = "INTERNAL: allreduce: rank 1 has ended"
FULL = "RESOURCE_EXHAUSTED: out of memory"


def make_params(value):
    return {"w": jnp.full((3, 2), value), "b": np.full(2, value, np.float32), "n": [jnp.int32(value)]}


def test_trees_are_shared_saved_and_restored(rank):
    state = hvd.elastic.JaxState(
        params=make_params(1.0 + rank),
        key=jax.random.key(rank),
        half=jnp.ones(3, jnp.bfloat16) * rank,
        step=rank,
    )

    state.sync()

    assert state.step == 0
    assert jnp.array_equal(state.params["w"], jnp.ones((3, 2)))
    assert isinstance(state.params["b"], np.ndarray)
    assert jax.random.key_data(state.key).tolist() == jax.random.key_data(jax.random.key(0)).tolist()
    assert state.half.dtype == jnp.bfloat16
    state.params = jax.tree_util.tree_map(lambda leaf: leaf * 2, state.params)
    state.commit()
    state.params = make_params(50.0)
    state.restore()
    assert float(state.params["w"][0, 0]) == 2.0
    kept = state.params["w"]
    state.params = make_params(60.0)
    state.commit()
    assert float(kept[0, 0]) == 2.0  # a commit writes into its own memory alone


@pytest.mark.disagreement
def test_the_newest_commit_is_taken_and_never_a_newcomer(rank, size):
    state = hvd.elastic.JaxState(params=make_params(1.0), step=0)
    state.sync()
    if rank == size - 1:
        state.params = make_params(7.0)
        state.step = 7
        state.save()
    if rank == 0:
        state = hvd.elastic.JaxState(params=make_params(9.0), step=9)

    state.sync()

    assert state.step == 7
    assert float(state.params["w"][0, 0]) == 7.0
    assert float(state.params["b"][0]) == 7.0


def test_what_failed_since_the_last_commit_is_done_again():
    failures = [1, 3]

    @jax.jit
    def step(weights, number):
        gradient = jax.grad(lambda w: jnp.sum((w * number - 1.0) ** 2))(weights)
        return weights - 0.01 * hvd.allreduce(gradient)

    @hvd.elastic.run
    def train(state):
        while state.step < 5:
            state.weights = step(state.weights, 1.0 + state.step)
            if failures and failures[0] == state.step:
                failures.pop(0)
                raise jax.errors.JaxRuntimeError(LOST)
            state.step += 1
            state.commit()
        return state.weights

    found = train(hvd.elastic.JaxState(weights=jnp.ones(4), step=0))

    expected = np.ones(4)
    for number in range(1, 6):
        expected -= 0.01 * 2 * number * (expected * number - 1.0)
    assert np.allclose(np.asarray(found), expected, rtol=1e-4)
    assert not failures


def test_other_errors_are_raised():
    @hvd.elastic.run
    def train(state):
        raise jax.errors.JaxRuntimeError(FULL)

    with pytest.raises(jax.errors.JaxRuntimeError, match="memory"):
        train(hvd.elastic.JaxState(step=0))


def test_every_sample_counts_once(size):
    length = 6 * size
    state = hvd.elastic.JaxState(indices=hvd.elastic.ElasticIndices(length), seen=())
    failures = [2, 4]

    @hvd.elastic.run
    def train(state):
        for index in state.indices:
            state.seen = (*state.seen, *hvd.allgather(jnp.asarray([index])).tolist())
            state.indices.record_batch(1)
            if failures and len(state.seen) >= failures[0] * size:
                failures.pop(0)
                raise HorovodInternalError
            state.commit()
        return state.seen

    assert sorted(train(state)) == list(range(length))
    assert not failures
