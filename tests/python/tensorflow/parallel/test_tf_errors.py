"""Disagreements raise on every rank, in every way to run; names and order; compilation."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from cases import WAYS, assert_same, everybody, in_function

import horovod.tensorflow as hvd


@pytest.mark.disagreement
@pytest.mark.parametrize("way", WAYS)
def test_other_shapes(way, rank):
    with pytest.raises(tf.errors.FailedPreconditionError, match="Mismatched ALLREDUCE tensor shapes"):
        way(lambda x: hvd.allreduce(x, name="shapes"), np.ones([2 + rank], np.float32))


@pytest.mark.disagreement
@pytest.mark.parametrize("way", WAYS)
def test_other_dtypes(way, rank):
    dtype = np.float32 if rank == 0 else np.int32

    with pytest.raises(tf.errors.FailedPreconditionError, match="Mismatched data types"):
        way(lambda x: hvd.allreduce(x, name="dtypes"), np.ones([2], dtype))


@pytest.mark.disagreement
def test_other_roots(rank):
    with pytest.raises(tf.errors.FailedPreconditionError, match="root"):
        hvd.broadcast(tf.ones([2]), rank, name="roots")


@pytest.mark.disagreement
def test_other_factors(rank):
    with pytest.raises(tf.errors.FailedPreconditionError, match="prescale"):
        hvd.allreduce(tf.ones([2]), prescale_factor=1.0 + rank, name="factors")


def test_what_one_rank_can_see_alone(size):
    with pytest.raises(tf.errors.InvalidArgumentError, match="splits"):
        hvd.alltoall(tf.ones([size]), splits=[2] * size)
    with pytest.raises(tf.errors.InvalidArgumentError, match="root"):
        hvd.broadcast(tf.ones([2]), size)
    with pytest.raises(tf.errors.InvalidArgumentError, match="1D splits"):
        hvd.alltoall(tf.ones([size]), splits=[[1] * size])


def test_a_set_that_is_not_registered():
    with pytest.raises(ValueError, match="not registered"):
        hvd.allreduce(tf.ones([2]), process_set=hvd.ProcessSet([0]))


def test_before_init():
    hvd.shutdown()
    with pytest.raises(tf.errors.FailedPreconditionError, match="init"):
        hvd.allreduce(tf.ones([2]))
    with pytest.raises(ValueError, match=r"hvd\.init"):
        hvd.size()
    hvd.init()


def test_the_job_goes_on_after_a_disagreement(rank, size):
    for _ in range(3):
        if size > 1:
            with pytest.raises(tf.errors.FailedPreconditionError):
                hvd.allreduce(tf.ones([2 + rank]), name="again")
        assert_same(hvd.allreduce(tf.ones([2]), op=hvd.Sum).numpy(), np.full([2], size, np.float32))


def test_compilation_is_refused_before_anything_waits():
    compiled = tf.function(hvd.allreduce, jit_compile=True)

    with pytest.raises(ValueError, match="cannot be compiled by XLA"):
        compiled(tf.ones([2]))


def test_shutdown_ends_operations_that_wait_for_others(rank, size):
    if size < 2:
        pytest.skip("nobody to wait for")
    if rank == 0:
        # The others have submitted when this arrives, or will be refused: an error in any case.
        hvd.shutdown()
    else:
        with pytest.raises((tf.errors.UnknownError, tf.errors.FailedPreconditionError)):
            in_function(
                lambda x: [hvd.allreduce(x, name=f"waits_{i}") for i in range(5)], np.ones([2], np.float32)
            )
        hvd.shutdown()
    hvd.init()


def test_many_operations_in_another_order_on_each_rank(rank, size):
    count = 60
    order = np.random.RandomState(rank).permutation(count)

    @tf.function
    def run(x):
        results = [None] * count
        for number in order:
            results[number] = hvd.allreduce(x * float(number), op=hvd.Sum, name=f"shuffled_{number}")
        return results

    for _ in range(5):
        results = run(tf.fill([7], float(rank + 1)))

        total = sum(r + 1 for r in everybody())
        for number, result in enumerate(results):
            assert_same(result.numpy(), np.full([7], total * number, np.float32))


def test_iterations_of_a_loop_that_overlap(rank):
    @tf.function
    def run(x):
        def body(i, total):
            return i + 1, total + hvd.allreduce(x + tf.cast(i, x.dtype), op=hvd.Sum)

        return tf.while_loop(lambda i, _: i < 30, body, (0, tf.zeros([2])), parallel_iterations=10)[1]

    expected = sum(sum(r + i for r in everybody()) for i in range(30))
    assert_same(run(tf.fill([2], float(rank))).numpy(), np.full([2], expected, np.float32))


def test_a_function_called_twice_in_a_graph(rank):
    inner = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name="inner"))

    result = in_function(lambda x: inner(x) + inner(2.0 * x), np.full([2], rank + 1.0, np.float32))

    assert_same(result, np.full([2], 3 * sum(r + 1 for r in everybody()), np.float32))


def summed(i):
    return hvd.allreduce(tf.cast(i, tf.float32), op=hvd.Sum)


def summed_in_a_function(i):
    return tf.function(summed)(i)


def summed_in_a_condition(i):
    return tf.cond(i >= 0, lambda: summed(i), lambda: -1.0)


def summed_in_a_loop(i):
    return tf.while_loop(lambda n, _: n < 1, lambda n, _: (n + 1, summed(i)), (0, 0.0))[1]


@pytest.mark.parametrize("total", [summed, summed_in_a_function, summed_in_a_condition, summed_in_a_loop])
def test_elements_of_a_dataset_meet_in_order(total, rank, size):
    def work(i):
        # If elements were under way together, another one would be ahead on each rank.
        rounds = tf.where(i % size == rank, 5_000, 0)
        busy = tf.while_loop(lambda n: n < rounds, lambda n: n + 1, [0])[0]
        return total(i + tf.cast(busy, tf.int64) * 0)

    data = tf.data.Dataset.range(12).map(work)

    assert [float(value) for value in data] == [float(size * i) for i in range(12)]


def test_a_conditional(rank):
    @tf.function
    def run(x, flag):
        return tf.cond(flag, lambda: hvd.allreduce(x, op=hvd.Sum), lambda: x)

    total = sum(r + 1.0 for r in everybody())
    x = tf.constant(rank + 1.0)
    assert float(run(x, tf.constant(True))) == total
    assert float(run(x, tf.constant(False))) == rank + 1.0


@pytest.mark.parametrize("operation", [hvd.allreduce, hvd.allgather, hvd.reducescatter])
def test_an_id_that_nobody_registered(operation):
    unknown = hvd.ProcessSet([0])
    unknown.process_set_id = 77

    with pytest.raises(ValueError, match="77"):
        operation(tf.ones([4]), process_set=unknown)
    with pytest.raises(ValueError, match="77"):
        tf.function(lambda x: operation(x, process_set=unknown))(tf.ones([4]))
