"""Allgather, broadcast, alltoall, barrier, join; parameters and objects."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import MOVABLE, SHAPES, SHAPES_WITH_ROWS, WAYS, assert_same, everybody, in_jit, value_of

import horovod.jax as hvd


@pytest.mark.parametrize("dtype", MOVABLE)
@pytest.mark.parametrize("way", WAYS[:2])
def test_every_dtype_moves(way, dtype, rank, size):
    mine = value_of(rank, (size, 2), dtype)
    gathered = way(hvd.allgather, mine)
    sent = way(lambda x: hvd.broadcast(x, size - 1), mine)
    swapped = way(hvd.alltoall, mine)

    all_of_them = [np.asarray(value_of(other, (size, 2), dtype)) for other in everybody()]
    assert_same(gathered, np.concatenate(all_of_them), dtype)
    assert_same(sent, all_of_them[-1], dtype)
    assert_same(swapped, np.stack([array[rank] for array in all_of_them]), dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", WAYS)
def test_broadcast_of_every_shape(way, shape, rank):
    result = way(partial(hvd.broadcast, root_rank=0), value_of(rank, shape, "float32"))

    assert_same(result, value_of(0, shape, "float32"))


@pytest.mark.parametrize("shape", SHAPES_WITH_ROWS)
@pytest.mark.parametrize("way", WAYS)
def test_allgather_of_every_shape(way, shape, rank):
    result = way(hvd.allgather, value_of(rank, shape, "float32"))

    assert_same(result, np.concatenate([value_of(other, shape, "float32") for other in everybody()]))


def test_allgather_of_uneven_rows(rank):
    result = hvd.allgather(value_of(rank, (rank + 1, 2), "int32"))

    assert_same(result, np.concatenate([value_of(r, (r + 1, 2), "int32") for r in everybody()]), "int32")


def test_grouped_allgather_of_uneven_rows(rank):
    results = hvd.grouped_allgather([jnp.full((rank + 1, n), rank) for n in (1, 2)], name="uneven")

    for n, result in enumerate(results, 1):
        assert_same(result, np.concatenate([np.full((r + 1, n), r) for r in everybody()]))


@pytest.mark.disagreement
def test_uneven_rows_inside_jit_are_explained(rank, size):
    own = 2 if rank == 0 else 4
    with pytest.raises(jax.errors.JaxRuntimeError, match="outside of jit"):
        jax.block_until_ready(in_jit(partial(hvd.allgather, name="uneven in jit"), jnp.ones((own, 2))))


def test_alltoall_with_splits(rank, size):
    mine = jnp.repeat(jnp.arange(size) * 10 + rank, jnp.arange(1, size + 1))
    output, received = hvd.alltoall(mine, splits=list(range(1, size + 1)))

    assert_same(output, np.repeat(rank * 10 + np.arange(size), rank + 1))
    assert_same(received, np.full(size, rank + 1), "int32")


def test_alltoall_with_splits_inside_jit(rank, size):
    mine = jnp.repeat(jnp.arange(size) * 10 + rank, jnp.arange(1, size + 1))
    splits, coming = tuple(range(1, size + 1)), (rank + 1,) * size
    output, received = jax.jit(lambda x: hvd.alltoall(x, splits, received_splits=coming))(mine)

    assert_same(output, np.repeat(rank * 10 + np.arange(size), rank + 1))
    assert_same(received, np.full(size, rank + 1))
    with pytest.raises(ValueError, match="received_splits"):
        jax.jit(lambda x: hvd.alltoall(x, splits))(mine)


def test_process_sets(process_set, rank):
    if rank not in process_set.ranks:
        return
    gathered = hvd.allgather(jnp.full((1, 2), rank), process_set=process_set)
    inside = in_jit(lambda x: hvd.allgather(x, process_set=process_set), jnp.full((1, 2), rank))
    root = process_set.ranks[-1]
    sent = in_jit(lambda x: hvd.broadcast(x, root, process_set=process_set), jnp.full(2, rank))

    assert_same(gathered, np.repeat(process_set.ranks, 2).reshape(-1, 2))
    assert_same(inside, gathered)
    assert_same(sent, np.full(2, root))


def test_scalars_have_no_rows():
    for operation in (hvd.allgather, hvd.alltoall, hvd.reducescatter):
        with pytest.raises(ValueError, match="scalar has no rows"):
            operation(jnp.ones(()))


def test_barrier_and_join(rank, size):
    hvd.barrier()
    jax.block_until_ready(jax.jit(lambda x: (hvd.barrier(), x + 1)[1])(jnp.ones(2)))
    if rank == 0:
        for _ in range(3):
            result = hvd.allreduce(jnp.ones(2), op=hvd.Sum)
        assert_same(result, np.ones(2))
        jax.block_until_ready(result)
    assert 0 <= hvd.join() < size
    with pytest.raises(ValueError, match="outside of jit"):
        jax.jit(lambda x: (hvd.join(), x)[1])(jnp.ones(2))


@pytest.mark.disagreement
def test_join_comes_after_the_steps_that_were_dispatched(rank, size):
    step = jax.jit(lambda x: hvd.allreduce(jnp.tanh(x @ x), op=hvd.Sum))  # large, so that JAX starts it later
    wide = jnp.full((300, 300), 1.0)
    for _ in range(6):
        jax.block_until_ready(step(wide))

    ours = [step(wide) for _ in range(6)]
    alone = [step(wide) for _ in range(2)] if rank == size - 1 else []
    last = hvd.join()

    assert 0 <= last < size
    for value in ours:
        assert_same(value[0, 0], size)
    for value in alone:
        assert_same(value[0, 0], 1.0)


def test_parameters_and_states(rank):
    key = jax.random.key(rank)
    tree = {
        "w": jnp.full((2, 3), rank + 1.0),
        "numpy": np.full(2, rank),
        "number": rank,
        "key": key,
        "old key": jax.random.PRNGKey(rank),
        "function": jax.nn.relu,
        "nothing": None,
    }
    result = hvd.broadcast_parameters(tree, root_rank=0)

    assert_same(result["w"], np.ones((2, 3)))
    assert isinstance(result["numpy"], np.ndarray)
    np.testing.assert_array_equal(result["numpy"], [0, 0])
    assert result["number"] == 0
    assert isinstance(result["number"], int)
    np.testing.assert_array_equal(jax.random.key_data(result["key"]), jax.random.key_data(jax.random.key(0)))
    np.testing.assert_array_equal(result["old key"], jax.random.PRNGKey(0))
    assert result["function"] is jax.nn.relu


def test_parameters_inside_jit(rank):
    tree = {"w": jnp.full((2, 3), rank + 1.0), "numpy": np.full(2, rank), "number": rank}

    result = jax.jit(lambda w: hvd.broadcast_parameters({**tree, "w": w}))(tree["w"])

    assert_same(result["w"], np.ones((2, 3)))
    assert_same(result["numpy"], np.zeros(2))
    assert_same(result["number"], 0)


def test_objects_and_metrics(rank, size):
    assert hvd.broadcast_object({"of": rank}, root_rank=0) == {"of": 0}
    assert hvd.allgather_object(rank) == everybody()
    averaged = hvd.metric_average({"loss": float(rank), "right": rank, "sure": True})

    assert averaged == {"loss": (size - 1) / 2, "right": (size - 1) / 2, "sure": 1.0}
