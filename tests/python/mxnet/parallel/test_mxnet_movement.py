"""allgather, alltoall and reducescatter over the ranks of the job, objects, join and barrier."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest
from mxnet_cases import DTYPES, assert_same, everybody, numbers_of, sum_of, value_of

import horovod.mxnet as hvd


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3,), (5, 3), (4, 3, 2)], ids=str)
def test_allgather(shape, dtype, rank):
    result = hvd.allgather(value_of(rank, shape, dtype))

    assert_same(result, np.concatenate([numbers_of(other, shape) for other in everybody()]), dtype)


def test_allgather_of_other_numbers_of_rows(rank):
    result = hvd.allgather(value_of(rank, (rank + 1, 2), "float32"), name="rows")

    assert_same(result, np.concatenate([numbers_of(other, (other + 1, 2)) for other in everybody()]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_groups_that_gather(dtype, rank):
    shapes = [(rank + 1, 3), (2,)]

    results = hvd.grouped_allgather([value_of(rank, shape, dtype) for shape in shapes])

    assert_same(results[0], np.concatenate([numbers_of(one, (one + 1, 3)) for one in everybody()]), dtype)
    assert_same(results[1], np.concatenate([numbers_of(one, (2,)) for one in everybody()]), dtype)
    assert hvd.grouped_allgather([]) == []


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [list, np.array, lambda rows: mx.nd.array(rows, dtype="int32")])
def test_alltoall_with_splits(kind, dtype, rank, size):
    splits = [other + 1 for other in range(size)]
    mine = mx.nd.array(np.repeat(np.arange(size), splits) + 10 * rank, dtype=dtype)

    result, received = hvd.alltoall(mine, kind(splits))

    assert_same(result, np.repeat(10 * np.arange(size) + rank, rank + 1), dtype)
    assert_same(received, np.full((size,), rank + 1), "int32")
    assert received.context == mx.cpu()


def test_alltoall_without_splits(rank, size):
    result = hvd.alltoall(mx.nd.array(np.arange(2 * size) + 100 * rank))

    assert_same(result, np.concatenate([[100 * i + 2 * rank, 100 * i + 2 * rank + 1] for i in range(size)]))


def rows_of(rank, size, count):
    """The rows that a reducescatter leaves on a rank: the first ranks get one more."""
    each, longer = divmod(count, size)
    start = rank * each + min(rank, longer)
    return slice(start, start + each + (rank < longer))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reducescatter(dtype, rank, size):
    result = hvd.reducescatter(value_of(rank, (size * 2 + 1, 3), dtype), op=hvd.Sum)

    expected = sum_of(everybody(), (size * 2 + 1, 3))[rows_of(rank, size, size * 2 + 1)]
    assert_same(result, expected, dtype)


def test_groups_that_scatter(rank, size):
    mine = [value_of(rank, (size, 2), "float32"), value_of(rank, (3 * size,), "float64")]

    results = hvd.grouped_reducescatter(mine, prescale_factor=2.0)

    for result, shape in zip(results, [(size, 2), (3 * size,)], strict=True):
        assert_same(result, 2.0 * sum_of(everybody(), shape)[rows_of(rank, size, shape[0])] / size)
    assert hvd.grouped_reducescatter([]) == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_sets_of_some_ranks(dtype, rank, process_set):
    if not process_set.included():
        return
    members = process_set.ranks
    count = len(members)

    gathered = hvd.allgather(value_of(rank, (2, 2), dtype), process_set=process_set)
    exchanged = hvd.alltoall(mx.nd.full((count,), rank, dtype=dtype), process_set=process_set)
    scattered = hvd.reducescatter(value_of(rank, (count, 2), dtype), hvd.Sum, process_set=process_set)

    assert_same(gathered, np.concatenate([numbers_of(other, (2, 2)) for other in members]), dtype)
    assert_same(exchanged, np.array(members), dtype)
    mine = process_set.rank()
    assert_same(scattered, sum_of(members, (count, 2))[mine : mine + 1], dtype)


def test_what_blocks_waits_for_what_is_pending(rank, size):
    left = mx.nd.ones((300, 300)) * (rank + 1)

    gathered = hvd.allgather(mx.nd.dot(left, mx.nd.ones((300, 2))))

    expected = np.repeat((np.arange(size) + 1) * 300.0, 300)[:, None] * np.ones((1, 2))
    assert_same(gathered, expected)


def test_objects(rank, size):
    assert hvd.broadcast_object({"from": rank}, root_rank=size - 1) == {"from": size - 1}
    assert hvd.allgather_object(["x"] * rank, name="lists") == [["x"] * other for other in range(size)]


def test_ranks_that_have_no_more_data_contribute_zeros(rank, size):
    for step in range(rank + 1):
        total = hvd.allreduce(mx.nd.ones((2,)), op=hvd.Sum, name="data")
        assert_same(total, np.full((2,), size - step))

    assert hvd.join() == size - 1


def test_a_barrier_lets_everybody_through():
    hvd.barrier()
    hvd.barrier(process_set=hvd.global_process_set)


def test_what_gathering_does_not_take(size):
    with pytest.raises(AssertionError, match="NDArray"):
        hvd.allgather([1])
    with pytest.raises(AssertionError, match="NDArray"):
        hvd.alltoall([1])
    with pytest.raises(AssertionError, match="Average or Sum, got Max"):
        hvd.reducescatter(mx.nd.ones((2,)), op=hvd.Max)
    with pytest.raises(ValueError, match="integers"):
        hvd.alltoall(mx.nd.ones((size,)), mx.nd.ones((size,), dtype="float32"))
    with pytest.raises(mx.base.MXNetError):
        hvd.alltoall(mx.nd.ones((size,)), [2] * size)
    with pytest.raises(ValueError, match="dtype"):
        hvd.allgather(mx.nd.ones((size,)).astype("bool"))


def test_a_scalar_has_no_rows():
    with mx.util.np_shape(), pytest.raises(ValueError, match="rank-zero"):
        hvd.reducescatter(mx.nd.ones(()))


def test_results_are_where_their_tensors_are(rank, size):
    """Programs give every rank a context of its own, cpu(1) on rank 1, and compute with both."""
    place = mx.cpu(rank)
    row, rows = mx.nd.ones((4,), ctx=place), mx.nd.ones((size, 3), ctx=place)

    results = [
        hvd.allreduce(row, name="place.row"),
        hvd.allreduce(rows, name="place.rows"),
        *hvd.grouped_allreduce([row, rows], name="place.group"),
        hvd.broadcast(row, 0, name="place.broadcast"),
        hvd.allgather(rows),
        *hvd.grouped_allgather([row, rows]),
        hvd.alltoall(rows),
        hvd.reducescatter(rows),
        *hvd.grouped_reducescatter([rows]),
    ]

    assert [result.context for result in results] == [place] * len(results)
    np.testing.assert_array_equal((results[1] + rows).asnumpy(), np.full((size, 3), 2.0))
