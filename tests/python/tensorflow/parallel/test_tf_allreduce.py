"""allreduce and grouped_allreduce: every dtype, shape and way to run them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from cases import (
    REDUCIBLE,
    SHAPES,
    WAYS,
    assert_same,
    eagerly,
    everybody,
    in_function,
    sum_of,
    value_of,
)

import horovod.tensorflow as hvd


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", REDUCIBLE, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sum(shape, dtype, way, rank):
    result = way(lambda x: hvd.allreduce(x, op=hvd.Sum), value_of(rank, shape, dtype))

    assert_same(result, sum_of(everybody(), shape, dtype))


@pytest.mark.parametrize("way", WAYS)
def test_average_is_the_default(way, rank, size):
    result = way(hvd.allreduce, value_of(rank, (5, 3), tf.float32))

    assert_same(result, sum_of(everybody(), (5, 3), tf.float32) / np.float32(size))


@pytest.mark.parametrize(
    ("op", "combine"), [(hvd.Min, np.minimum), (hvd.Max, np.maximum), (hvd.Product, np.multiply)]
)
def test_other_operations(op, combine, rank):
    result = in_function(lambda x: hvd.allreduce(x, op=op), value_of(rank, (17,), tf.float64))

    assert_same(result, combine.reduce([value_of(r, (17,), tf.float64) for r in everybody()]))


def test_scaling(rank):
    result = eagerly(
        lambda x: hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0),
        value_of(rank, (17,), tf.float32),
    )

    assert_same(result, 2 * sum_of(everybody(), (17,), tf.float32))


def test_adasum_of_equal_tensors_is_the_tensor():
    tensor = tf.constant([1.0, 2.0, 3.0])

    np.testing.assert_allclose(hvd.allreduce(tensor, op=hvd.Adasum).numpy(), tensor.numpy(), rtol=1e-5)


def test_process_set(process_set, rank):
    if not process_set.included():
        return
    result = in_function(
        lambda x: hvd.allreduce(x, op=hvd.Sum, process_set=process_set), value_of(rank, (5, 3), tf.float32)
    )

    assert_same(result, sum_of(process_set.ranks, (5, 3), tf.float32))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [tf.float32, tf.int64, tf.bfloat16], ids=lambda d: d.name)
def test_group(dtype, way, rank):
    shapes = [(4,), (), (2, 3), (0,)]

    results = way(
        lambda *xs: hvd.grouped_allreduce(list(xs), op=hvd.Sum), *[value_of(rank, s, dtype) for s in shapes]
    )

    for result, shape in zip(results, shapes, strict=True):
        assert_same(result, sum_of(everybody(), shape, dtype))


def test_a_group_may_mix_dtypes_and_sparse_tensors(rank, size):
    sparse = tf.IndexedSlices(tf.ones([1, 2]) * (rank + 1), tf.constant([rank]), tf.constant([size, 2]))
    dense = [tf.ones([3]), tf.ones([2], tf.float64) * 2]

    first, middle, last = hvd.grouped_allreduce([dense[0], sparse, dense[1]], op=hvd.Sum)

    assert_same(first.numpy(), np.full([3], size, np.float32))
    assert_same(last.numpy(), np.full([2], 2 * size, np.float64))
    assert isinstance(middle, tf.IndexedSlices)
    expected = np.array([[r + 1, r + 1] for r in range(size)], np.float32)
    assert_same(tf.convert_to_tensor(middle).numpy(), expected)
    assert middle.dense_shape.numpy().tolist() == [size, 2]


def test_an_empty_group_is_returned_as_it_is():
    assert hvd.grouped_allreduce([]) == []


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.int32], ids=lambda d: d.name)
def test_compression_keeps_the_dtype(compression, dtype, rank):
    result = in_function(
        lambda x: hvd.allreduce(x, op=hvd.Sum, compression=compression), value_of(rank, (17,), dtype)
    )

    assert_same(result, sum_of(everybody(), (17,), dtype))


def test_a_compressor_of_the_user(rank):
    class Halved(hvd.Compression.none):
        @staticmethod
        def compress(tensor):
            return tensor / 2, None

        @staticmethod
        def decompress(tensor, ctx):
            return tensor * 2

    result = hvd.allreduce(tf.constant(value_of(rank, (5,), tf.float32)), op=hvd.Sum, compression=Halved)

    assert_same(result.numpy(), sum_of(everybody(), (5,), tf.float32))


def test_indexed_slices_average(rank, size):
    slices = tf.IndexedSlices(tf.fill([2, 3], float(rank + 1)), tf.constant([rank, rank]), [size, 3])

    reduced = hvd.allreduce(slices)

    expected = np.array([[2 * (r + 1) / size] * 3 for r in range(size)], np.float32)
    assert_same(tf.convert_to_tensor(reduced).numpy(), expected)


def test_indexed_slices_refuse_what_rows_cannot_do():
    slices = tf.IndexedSlices(tf.ones([1, 1]), tf.constant([0]), [1, 1])

    with pytest.raises(NotImplementedError, match="sparse_as_dense"):
        hvd.allreduce(slices, op=hvd.Adasum)
    with pytest.raises(NotImplementedError, match="Average and Sum"):
        hvd.allreduce(slices, op=hvd.Max)
    with pytest.raises(NotImplementedError, match="prescale_factor"):
        hvd.allreduce(slices, op=hvd.Sum, prescale_factor=2.0)


def test_the_input_stays_as_it_was(rank):
    tensor = tf.constant(value_of(rank, (17,), tf.float32))
    variable = tf.Variable(tensor)

    hvd.allreduce(tensor, op=hvd.Sum)
    in_function(lambda: hvd.allreduce(variable, op=hvd.Sum))

    assert_same(tensor.numpy(), value_of(rank, (17,), tf.float32))
    assert_same(variable.numpy(), value_of(rank, (17,), tf.float32))


def test_average_as_the_old_parameter(rank, size):
    with pytest.warns(DeprecationWarning, match="average"):
        result = hvd.allreduce(tf.ones([2]), average=False)

    assert_same(result.numpy(), np.full([2], size, np.float32))
    with pytest.raises(ValueError, match="average"):
        hvd.allreduce(tf.ones([2]), average=True, op=hvd.Sum)


def test_names_of_nodes():
    with tf.Graph().as_default():
        tensor = tf.compat.v1.placeholder(tf.float32, [2], name="some_input")

        assert hvd.allreduce(tensor).op.name == "HorovodAllreduce_some_input_0"
        assert hvd.allgather(tensor).op.name == "HorovodAllgather_some_input_0"
        assert hvd.broadcast(tensor, 0).op.name == "HorovodBroadcast_some_input_0"
        assert hvd.allreduce(tensor, name="mine").op.name == "mine"
        group = hvd.grouped_allreduce([tensor, tensor * 2])
        assert group[0].op.name.startswith("HorovodGroupedAllreduce_some_input_0_")
