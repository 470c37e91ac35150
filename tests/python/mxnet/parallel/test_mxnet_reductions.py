"""Allreduce and broadcast over the ranks of the job."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest
from mxnet_cases import (
    DTYPES,
    FLOAT_DTYPES,
    SHAPES,
    assert_same,
    everybody,
    numbers_of,
    sum_of,
    value_of,
)

import horovod.mxnet as hvd


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sum_in_every_form(shape, dtype, rank):
    mine = value_of(rank, shape, dtype)
    in_place = mine.copy()

    fresh = hvd.allreduce(mine, op=hvd.Sum)
    named = hvd.allreduce(mine, op=hvd.Sum, name="named", priority=3)
    returned = hvd.allreduce_(in_place, op=hvd.Sum)

    for result in (fresh, named, in_place):
        assert_same(result, sum_of(everybody(), shape), dtype)
    assert returned is in_place
    assert_same(mine, numbers_of(rank, shape), dtype)


@pytest.mark.parametrize("dtype", FLOAT_DTYPES)
def test_average_is_the_default(dtype, rank, size):
    assert_same(hvd.allreduce(value_of(rank, (4, 5), dtype)), sum_of(everybody(), (4, 5)) / size, dtype)


def test_average_may_be_asked_for_in_the_old_way(rank, size):
    mine = value_of(rank, (4,), "float32")

    with pytest.warns(DeprecationWarning, match="average"):
        average = hvd.allreduce(mine, True)
    with pytest.warns(DeprecationWarning, match="average"):
        total = hvd.allreduce(mine, average=False)

    assert_same(average, sum_of(everybody(), (4,)) / size)
    assert_same(total, sum_of(everybody(), (4,)))
    with pytest.raises(ValueError, match="both"):
        hvd.allreduce(mine, average=True, op=hvd.Sum)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op", "combine"), [(hvd.Min, np.min), (hvd.Max, np.max), (hvd.Product, np.prod)])
def test_other_operations(op, combine, dtype, process_set, rank):
    for members in (hvd.global_process_set, process_set):
        if rank not in members.ranks:
            continue
        given = [value_of(rank, shape, dtype) for shape in SHAPES]
        results = [hvd.allreduce(mine, op=op, process_set=members) for mine in given]

        for shape, result in zip(SHAPES, results, strict=True):
            expected = combine([numbers_of(other, shape) for other in members.ranks], axis=0)
            assert_same(result, expected.astype(dtype), dtype)  # integers wrap around


@pytest.mark.parametrize("dtype", FLOAT_DTYPES)
def test_factors(dtype, rank):
    result = hvd.allreduce(value_of(rank, (8,), dtype), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)

    assert_same(result, 2.0 * sum_of(everybody(), (8,)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_groups(dtype, rank):
    mine = [value_of(rank, shape, dtype) for shape in SHAPES]
    in_place = [one.copy() for one in mine]

    fresh = hvd.grouped_allreduce(mine, op=hvd.Sum, name="group")
    unnamed = hvd.grouped_allreduce(mine, op=hvd.Sum)
    returned = hvd.grouped_allreduce_(in_place, op=hvd.Sum)

    for results in (fresh, unnamed, in_place):
        for result, shape in zip(results, SHAPES, strict=True):
            assert_same(result, sum_of(everybody(), shape), dtype)
    assert returned is in_place


def test_a_group_of_nothing_is_nothing():
    assert hvd.grouped_allreduce([]) == []
    assert hvd.grouped_allreduce_([]) == []


def test_a_group_of_several_dtypes(rank):
    mine = [value_of(rank, (6,), dtype) for dtype in ("float32", "float64", "int32")]

    for result in hvd.grouped_allreduce(mine, op=hvd.Sum):
        assert_same(result, sum_of(everybody(), (6,)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_broadcast_of_every_root(shape, dtype, rank, size):
    for root in range(size):
        mine = value_of(rank, shape, dtype)
        in_place = mine.copy()

        fresh = hvd.broadcast(mine, root)
        returned = hvd.broadcast_(in_place, root, name=f"root.{root}")

        assert_same(fresh, numbers_of(root, shape), dtype)
        assert_same(in_place, numbers_of(root, shape), dtype)
        assert returned is in_place
        assert_same(mine, numbers_of(rank, shape), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sets_of_some_ranks(dtype, rank, process_set):
    if process_set.included():
        mine = value_of(rank, (5, 2), dtype)

        total = hvd.allreduce(mine, op=hvd.Sum, process_set=process_set)
        group = hvd.grouped_allreduce([mine, mine], op=hvd.Sum, process_set=process_set)
        root = process_set.ranks[-1]
        roots = hvd.broadcast(mine, root, process_set=process_set)

        for result in (total, *group):
            assert_same(result, sum_of(process_set.ranks, (5, 2)))
        assert_same(roots, numbers_of(root, (5, 2)))
    # Operations of the set have not moved the numbers of the others.
    assert_same(hvd.allreduce(value_of(rank, (3,), dtype), op=hvd.Sum), sum_of(everybody(), (3,)))


def test_arrays_of_numpy_stay_arrays_of_numpy(rank):
    mine = mx.np.array(numbers_of(rank, (4,)), dtype="float32")

    result = hvd.allreduce(mine, op=hvd.Sum)

    assert isinstance(result, mx.np.ndarray)
    assert_same(result, sum_of(everybody(), (4,)))
    assert isinstance(hvd.allgather(mine), mx.np.ndarray)


def test_what_an_allreduce_does_not_take():
    with pytest.raises(AssertionError, match="Adasum"):
        hvd.allreduce(mx.nd.ones((2,)), op=hvd.Adasum)
    with pytest.raises(AssertionError, match="NDArray"):
        hvd.allreduce([1.0, 2.0])
    with pytest.raises(ValueError, match="row_sparse"):
        hvd.allreduce(mx.nd.ones((2, 2)).tostype("row_sparse"))


def test_results_are_no_part_of_a_recorded_graph(rank):
    x = mx.nd.ones((3, 2))
    x.attach_grad()
    with mx.autograd.record():
        y = (x * 2).sum() + hvd.allreduce(x, op=hvd.Sum).sum()
    y.backward()

    assert_same(x.grad, np.full((3, 2), 2.0))
