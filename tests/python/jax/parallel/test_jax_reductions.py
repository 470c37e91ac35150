"""Allreduce and reducescatter: op, dtype, shape, process set, ways to run."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import (
    REDUCIBLE,
    SHAPES,
    SHAPES_WITH_ROWS,
    WAYS,
    assert_same,
    everybody,
    in_jit,
    reduced,
    value_of,
)

import horovod.jax as hvd

OPS = {hvd.Sum: np.sum, hvd.Min: np.min, hvd.Max: np.max, hvd.Product: np.prod}


@pytest.mark.parametrize("dtype", REDUCIBLE)
@pytest.mark.parametrize("way", WAYS[:2])
def test_sum_of_every_dtype(way, dtype, rank):
    result = way(lambda x: hvd.allreduce(x, op=hvd.Sum), value_of(rank, (5, 3), dtype))

    assert_same(result, reduced(everybody(), (5, 3), dtype, np.sum), dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", WAYS)
def test_average_of_every_shape(way, shape, rank):
    result = way(hvd.allreduce, value_of(rank, shape, "float32"))

    assert_same(result, reduced(everybody(), shape, "float32", np.mean), "float32")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_every_op(op, dtype, rank):
    result = in_jit(lambda x: hvd.allreduce(x, op=op), value_of(rank, (7,), dtype))

    assert_same(result, reduced(everybody(), (7,), dtype, OPS[op]), dtype)


def test_adasum_of_equal_arrays_is_the_array():
    result = in_jit(lambda x: hvd.allreduce(x, op=hvd.Adasum), jnp.arange(1.0, 6.0))

    assert_same(result, np.arange(1.0, 6.0))


def test_factors(rank, size):
    result = hvd.allreduce(
        jnp.full(3, 2.0), op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0, name="factors"
    )

    assert_same(result, np.full(3, 3.0 * size))


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16])
def test_compressed_arrays_keep_their_dtype(compression, size):
    tree = {
        "a": jnp.full(9, 0.5, jnp.float32),
        "b": jnp.full(2, 3, jnp.int32),
        "c": jnp.ones((), jnp.float64),
    }
    result = in_jit(lambda t: hvd.allreduce(t, op=hvd.Sum, compression=compression), tree)

    assert_same(result["a"], np.full(9, 0.5 * size), "float32")
    assert_same(result["b"], np.full(2, 3 * size), "int32")
    assert_same(result["c"], size, "float64")


@pytest.mark.parametrize("way", WAYS)
def test_a_pytree_of_mixed_dtypes_is_one_operation(way, rank, size):
    tree = {
        "w": value_of(rank, (4, 2), "float32"),
        "deep": [value_of(rank, (3,), "bfloat16"), (value_of(rank, (), "int32"),)],
    }
    result = way(lambda t: hvd.allreduce(t, op=hvd.Sum), tree)

    assert_same(result["w"], reduced(everybody(), (4, 2), "float32", np.sum), "float32")
    assert_same(result["deep"][0], reduced(everybody(), (3,), "bfloat16", np.sum), "bfloat16")
    assert_same(result["deep"][1][0], reduced(everybody(), (), "int32", np.sum), "int32")


def test_trees_without_arrays_stay():
    assert hvd.allreduce({"a": None}) == {"a": None}
    with pytest.raises(ValueError, match="at least one"):
        hvd.grouped_allreduce([])


def test_grouped_allreduce(rank):
    arrays = [value_of(rank, (n,), "float32") for n in (1, 2, 3)]
    results = hvd.grouped_allreduce(arrays, op=hvd.Sum, name="group")

    for n, result in enumerate(results, 1):
        assert_same(result, reduced(everybody(), (n,), "float32", np.sum))


def test_unsigned_sums(size):
    result = hvd.allreduce(jnp.full(3, 2**31, jnp.uint32), op=hvd.Sum)

    assert_same(result, np.full(3, (2**31 * size) % 2**32), "uint32")
    with pytest.raises(TypeError, match="uint32 support op=Sum alone"):
        hvd.allreduce(jnp.ones(3, jnp.uint32))


@pytest.mark.parametrize("way", WAYS)
def test_process_sets(way, process_set, rank):
    if rank not in process_set.ranks:
        return
    result = way(
        lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=process_set), value_of(rank, (3,), "float32")
    )

    assert_same(result, reduced(process_set.ranks, (3,), "float32", np.sum))


def _rows_of(rank, rows, size):
    each, longer = divmod(rows, size)
    start = rank * each + min(rank, longer)
    return slice(start, start + each + (rank < longer))


@pytest.mark.parametrize("shape", SHAPES_WITH_ROWS)
@pytest.mark.parametrize("way", WAYS)
def test_reducescatter(way, shape, rank, size):
    result = way(lambda x: hvd.reducescatter(x, op=hvd.Sum), value_of(rank, shape, "float32"))

    whole = reduced(everybody(), shape, "float32", np.sum)
    assert_same(result, whole[_rows_of(rank, shape[0], size)], "float32")


def test_grouped_reducescatter(rank, size):
    arrays = [value_of(rank, (size * n, 2), "float32") for n in (1, 2)]
    results = hvd.grouped_reducescatter(arrays, hvd.Average)

    for n, result in enumerate(results, 1):
        whole = reduced(everybody(), (size * n, 2), "float32", np.mean)
        assert_same(result, whole[_rows_of(rank, size * n, size)])


def test_inputs_are_never_changed(rank):
    given = value_of(rank, (1000,), "float32")
    before = np.asarray(given).copy()
    hvd.allreduce(given)
    jax.jit(hvd.allreduce)(given).block_until_ready()

    np.testing.assert_array_equal(np.asarray(given), before)


def test_donated_buffers_are_used(rank):
    given = value_of(rank, (1000,), "float32")
    where = given.unsafe_buffer_pointer()
    result = jax.jit(hvd.allreduce, donate_argnums=0)(given)

    assert result.unsafe_buffer_pointer() == where
    assert_same(result, reduced(everybody(), (1000,), "float32", np.mean))
