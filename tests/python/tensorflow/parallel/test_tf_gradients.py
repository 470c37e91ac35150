"""Gradients of the operations."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from cases import assert_same, everybody

import horovod.tensorflow as hvd


def gradient_of(operation, tensor, weight):
    """d sum(weight * operation(x)) / dx, in a function."""

    @tf.function
    def compute(x, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(w * operation(x))
        return tape.gradient(loss, x)

    return compute(tf.constant(tensor), tf.constant(weight)).numpy()


def weight_of(rank, shape):
    return (np.arange(int(np.prod(shape)), dtype=np.float64) + 10 * (rank + 1)).reshape(shape)


def test_allreduce_sum(rank):
    result = gradient_of(lambda x: hvd.allreduce(x, op=hvd.Sum), np.ones([3, 2]), weight_of(rank, (3, 2)))

    assert_same(result, sum(weight_of(r, (3, 2)) for r in everybody()))


def test_allreduce_average(rank, size):
    result = gradient_of(hvd.allreduce, np.ones([4]), weight_of(rank, (4,)))

    assert_same(result, sum(weight_of(r, (4,)) for r in everybody()) / size)


def test_grouped_allreduce(rank):
    result = gradient_of(
        lambda x: tf.add_n(hvd.grouped_allreduce([x, 2 * x], op=hvd.Sum)), np.ones([4]), weight_of(rank, (4,))
    )

    assert_same(result, 3 * sum(weight_of(r, (4,)) for r in everybody()))


@pytest.mark.parametrize("grouped", [False, True])
def test_allgather_of_different_rows(grouped, rank, size):
    total = sum(r + 1 for r in everybody())
    start = sum(r + 1 for r in range(rank))

    def gather(x):
        return hvd.grouped_allgather([x])[0] if grouped else hvd.allgather(x)

    result = gradient_of(gather, np.ones([rank + 1, 2]), weight_of(rank, (total, 2)))

    average = sum(weight_of(r, (total, 2)) for r in everybody()) / size
    assert_same(result, average[start : start + rank + 1])


def test_broadcast_counts_at_the_root_alone(rank, size):
    result = gradient_of(lambda x: hvd.broadcast(x, 0), np.ones([3]), weight_of(rank, (3,)))

    average = sum(weight_of(r, (3,)) for r in everybody()) / size
    assert_same(result, average if rank == 0 else np.zeros([3]))


def test_alltoall_sends_back(rank, size):
    result = gradient_of(
        lambda x: hvd.alltoall(x, splits=[2] * size)[0], np.ones([2 * size]), weight_of(rank, (2 * size,))
    )

    expected = np.concatenate([weight_of(r, (2 * size,))[2 * rank : 2 * rank + 2] for r in everybody()])
    assert_same(result, expected)


@pytest.mark.parametrize(("op", "factor"), [(hvd.Average, 1), (hvd.Sum, None)])
def test_reducescatter(op, factor, rank, size):
    result = gradient_of(
        lambda x: hvd.reducescatter(x, op=op, prescale_factor=2.0),
        np.ones([size, 2]),
        weight_of(rank, (1, 2)),
    )

    gathered = np.concatenate([weight_of(r, (1, 2)) for r in everybody()])
    assert_same(result, gathered * 2.0 * (factor or size))


def test_gradient_in_a_session(rank):
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float64, [2])
        (gradient,) = tf.compat.v1.gradients(hvd.allreduce(x, op=hvd.Sum) * (rank + 1.0), x)
        with tf.compat.v1.Session() as session:
            result = session.run(gradient, {x: [1.0, 2.0]})

    assert_same(result, np.full([2], sum(r + 1.0 for r in everybody())))


OPERATIONS = {
    "allreduce": hvd.allreduce,
    "grouped_allreduce": lambda x: hvd.grouped_allreduce([x, 2 * x])[0],
    "allgather": hvd.allgather,
    "grouped_allgather": lambda x: hvd.grouped_allgather([x, 2 * x])[0],
    "broadcast": lambda x: hvd.broadcast(x, 0),
    "alltoall": hvd.alltoall,
    "reducescatter": hvd.reducescatter,
    "grouped_reducescatter": lambda x: hvd.grouped_reducescatter([x, 2 * x])[0],
}


@pytest.mark.parametrize("way", [lambda f: f, tf.function], ids=["eager", "function"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_gradients_of_another_dtype_than_the_result_are_cast(operation, way, size):
    """Of a group TensorFlow itself hands in such gradients: zeros for the outputs that nobody used."""

    def gradient(dtype):
        def compute(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = operation(x)
            return tape.gradient(y, x, output_gradients=tf.ones(tf.shape(y), dtype))

        return way(compute)(tf.ones([size, 2], tf.float64))

    result = gradient(tf.float32)

    assert result.dtype == tf.float64
    assert_same(result.numpy(), gradient(tf.float64).numpy())
