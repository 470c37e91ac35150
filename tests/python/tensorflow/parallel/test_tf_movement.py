"""allgather, broadcast, alltoall, reducescatter and their groups; join, barrier, queries."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from cases import (
    MOVABLE,
    SHAPES,
    SHAPES_WITH_ROWS,
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
@pytest.mark.parametrize("dtype", MOVABLE, ids=lambda d: d.name)
def test_allgather(dtype, way, rank):
    result = way(hvd.allgather, value_of(rank, (3, 2), dtype))

    assert_same(result, np.concatenate([value_of(r, (3, 2), dtype) for r in everybody()]))


@pytest.mark.parametrize("way", WAYS)
def test_allgather_of_different_rows(way, rank):
    result = way(hvd.allgather, value_of(rank, (rank + 1, 2), tf.float32))

    assert_same(result, np.concatenate([value_of(r, (r + 1, 2), tf.float32) for r in everybody()]))


def test_allgather_with_a_rank_that_has_nothing(rank):
    rows = 0 if rank == 0 else 2

    result = eagerly(hvd.allgather, value_of(rank, (rows, 2), tf.int32))

    parts = [value_of(r, (0 if r == 0 else 2, 2), tf.int32) for r in everybody()]
    assert_same(result, np.concatenate(parts))


@pytest.mark.parametrize("way", WAYS)
def test_grouped_allgather(way, rank):
    shapes = [(2, 3), (rank + 1,)]

    first, last = way(
        lambda *xs: hvd.grouped_allgather(list(xs)), *[value_of(rank, s, tf.float32) for s in shapes]
    )

    assert_same(first, np.concatenate([value_of(r, (2, 3), tf.float32) for r in everybody()]))
    assert_same(last, np.concatenate([value_of(r, (r + 1,), tf.float32) for r in everybody()]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", MOVABLE, ids=lambda d: d.name)
def test_broadcast(dtype, way, rank, size):
    for shape in SHAPES:
        result = way(lambda x: hvd.broadcast(x, size - 1), value_of(rank, shape, dtype))

        assert_same(result, value_of(size - 1, shape, dtype))


def test_broadcast_of_a_process_set_takes_a_global_rank(process_set, rank):
    if not process_set.included():
        return
    root = process_set.ranks[-1]

    result = eagerly(
        lambda x: hvd.broadcast(x, root, process_set=process_set), value_of(rank, (4,), tf.int32)
    )

    assert_same(result, value_of(root, (4,), tf.int32))


def test_broadcast_in_place(rank):
    variables = [tf.Variable(tf.fill([3], rank)), tf.Variable(tf.fill([2, 2], float(rank)))]

    values = hvd.broadcast_(variables, 0)

    for variable, value in zip(variables, values, strict=True):
        assert not np.any(variable.numpy())
        assert not np.any(value.numpy())


def address_of(tensor):
    return np.asarray(memoryview(tensor)).ctypes.data


@pytest.mark.parametrize("count", [3, 300_000])
def test_a_broadcast_copies_nothing_at_the_root(count, rank):
    variable = tf.Variable(tf.fill([count], float(rank + 1)))
    value = variable.read_value()

    result = hvd.broadcast(value, 0)

    assert (address_of(result) == address_of(value)) == (rank == 0)
    variable.assign_add(tf.ones([count]))
    assert_same(result.numpy(), np.ones([count], np.float32))
    assert_same(value.numpy(), np.full([count], rank + 1, np.float32))


@pytest.mark.parametrize("count", [3, 300_000])
def test_a_variable_takes_over_what_was_broadcast(count, rank):
    variable = tf.Variable(tf.fill([count], float(rank)))
    value = hvd.broadcast(variable.read_value(), 0)

    variable.assign(value)

    assert address_of(variable.read_value()) == address_of(value)
    assert not np.any(variable.numpy())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", MOVABLE, ids=lambda d: d.name)
def test_alltoall_with_splits(dtype, way, rank, size):
    splits = np.arange(1, size + 1, dtype=np.int32)
    rows = value_of(rank, (int(splits.sum()), 2), dtype)

    output, received = way(hvd.alltoall, rows, splits)

    start = int(splits[:rank].sum())
    parts = [value_of(r, (int(splits.sum()), 2), dtype)[start : start + rank + 1] for r in everybody()]
    assert_same(output, np.concatenate(parts))
    assert received.tolist() == [rank + 1] * size


def test_alltoall_without_splits(rank, size):
    result = in_function(hvd.alltoall, np.arange(2 * size, dtype=np.int32) + 100 * rank)

    expected = np.concatenate([[2 * rank + 100 * r, 2 * rank + 1 + 100 * r] for r in everybody()])
    assert_same(result, expected.astype(np.int32))


def test_alltoall_of_nothing(size):
    output, received = hvd.alltoall(tf.zeros([0, 3]), splits=tf.zeros([size], tf.int32))

    assert output.shape == (0, 3)
    assert received.numpy().tolist() == [0] * size


@pytest.mark.parametrize("way", WAYS)
def test_reducescatter_of_uneven_rows(way, rank, size):
    rows = 4 * size + size // 2

    result = way(lambda x: hvd.reducescatter(x, op=hvd.Sum), value_of(rank, (rows, 2), tf.float32))

    longer = size // 2
    start = 4 * rank + min(rank, longer)
    expected = sum_of(everybody(), (rows, 2), tf.float32)[start : start + 4 + (rank < longer)]
    assert_same(result, expected)


def test_grouped_reducescatter(rank, size):
    shapes = [(size, 2), (2 * size,)]

    results = in_function(
        lambda *xs: hvd.grouped_reducescatter(list(xs), op=hvd.Sum),
        *[value_of(rank, s, tf.float64) for s in shapes],
    )

    assert_same(results[0], sum_of(everybody(), shapes[0], tf.float64)[rank : rank + 1])
    assert_same(results[1], sum_of(everybody(), shapes[1], tf.float64)[2 * rank : 2 * rank + 2])


def test_shapes_are_known_in_graphs():
    with tf.Graph().as_default():
        known = tf.compat.v1.placeholder(tf.float32, [2, 3])
        unknown = tf.compat.v1.placeholder(tf.float32)

        assert hvd.allreduce(known).shape.as_list() == [2, 3]
        assert hvd.broadcast(known, 0).shape.as_list() == [2, 3]
        assert hvd.allgather(known).shape.as_list() == [None, 3]
        assert hvd.reducescatter(known).shape.as_list() == [None, 3]
        output, received = hvd.alltoall(known, splits=[1])
        assert output.shape.as_list() == [None, 3]
        assert received.shape.as_list() == [None]
        assert hvd.allgather(unknown).shape.rank is None


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (hvd.allgather, tf.errors.FailedPreconditionError),
        (hvd.alltoall, tf.errors.FailedPreconditionError),
        (hvd.reducescatter, tf.errors.InvalidArgumentError),
    ],
)
def test_scalars_have_no_rows(operation, error):
    with pytest.raises(error, match="a rank-zero tensor"):
        operation(tf.constant(1.0))
    with tf.Graph().as_default(), pytest.raises(ValueError, match="at least rank 1"):
        operation(tf.compat.v1.placeholder(tf.float32, []))


@pytest.mark.parametrize("way", WAYS)
def test_queries(way, rank, size):
    results = way(
        lambda: [
            hvd.rank_op(),
            hvd.size_op(),
            hvd.local_rank_op(),
            hvd.local_size_op(),
            hvd.process_set_included_op(),
            hvd.size_op(process_set_id=999),
        ]
    )

    assert [int(r) for r in results] == [rank, size, hvd.local_rank(), hvd.local_size(), 1, -3]


@pytest.mark.parametrize("way", [eagerly, in_function])
def test_join_with_different_numbers_of_steps(way, rank, size):
    for step in range(rank + 1):
        result = way(lambda x: hvd.allreduce(x, op=hvd.Sum, name="uneven"), np.ones([4], np.float32))
        assert_same(result, np.full([4], size - step, np.float32))

    assert int(way(hvd.join)) == size - 1


def test_barrier_in_a_function():
    @tf.function
    def meet():
        hvd.barrier()
        return hvd.rank_op()

    assert int(meet()) == hvd.rank()


@pytest.mark.parametrize("shape", SHAPES_WITH_ROWS, ids=str)
def test_objects_and_operations_together(shape, rank, size):
    gathered = hvd.allgather_object({"rank": rank, "shape": shape})

    assert [entry["rank"] for entry in gathered] == list(range(size))
    assert hvd.broadcast_object(["from", rank], root_rank=size - 1) == ["from", size - 1]
    assert hvd.broadcast_object_fn(root_rank=0)(rank) == 0
