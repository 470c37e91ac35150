"""Every operation on every dtype, of all ranks and of a process set, at once and as one program."""

from __future__ import annotations

import numpy as np
import pytest
from cases import MOVABLE, REDUCIBLE, SHAPES, assert_same, eagerly, in_jit, reduced, value_of

import horovod.jax as hvd

SUMMABLE = [*REDUCIBLE, "uint32", "uint64", "complex128"]
# Three rows for each of the ranks, and one more: the ranks get different numbers of them.
MOVERS = {
    "allgather": hvd.allgather,
    "broadcast": lambda x, process_set: hvd.broadcast(x, process_set.ranks[-1], process_set=process_set),
    "alltoall": hvd.alltoall,
}
REDUCERS = {"allreduce": hvd.allreduce, "reducescatter": hvd.reducescatter}


@pytest.fixture(params=["all ranks", "some ranks"])
def members(request, process_set):
    """Both kinds of sets."""
    return hvd.global_process_set if request.param == "all ranks" else process_set


def _moved(ranks, rank, shape, dtype):
    """Return what numpy makes of the arrays of ranks."""
    arrays = [np.asarray(value_of(other, shape, dtype)) for other in ranks]
    mine = slice(3 * ranks.index(rank), 3 * ranks.index(rank) + 3)
    return {
        "allgather": np.concatenate(arrays),
        "broadcast": arrays[-1],
        "alltoall": np.concatenate([array[mine] for array in arrays]),
    }


@pytest.mark.parametrize("way", [eagerly, in_jit])
def test_moves(way, members, rank):
    ranks = members.ranks
    if rank not in ranks:
        return
    shape = (3 * len(ranks), 2)
    given = {dtype: value_of(rank, shape, dtype) for dtype in MOVABLE}

    results = way(
        lambda arrays: {
            dtype: {name: move(array, process_set=members) for name, move in MOVERS.items()}
            for dtype, array in arrays.items()
        },
        given,
    )

    for dtype in MOVABLE:
        for name, expected in _moved(ranks, rank, shape, dtype).items():
            np.testing.assert_array_equal(np.asarray(results[dtype][name]), expected, f"{name} of {dtype}")
            assert_same(results[dtype][name], expected, dtype)


@pytest.mark.parametrize("way", [eagerly, in_jit])
def test_sums(way, members, rank):
    ranks = members.ranks
    if rank not in ranks:
        return
    shape = (3 * len(ranks) + 1, 2)
    given = {dtype: value_of(rank, shape, dtype) for dtype in SUMMABLE}

    results = way(
        lambda arrays: {
            dtype: {name: add(array, op=hvd.Sum, process_set=members) for name, add in REDUCERS.items()}
            for dtype, array in arrays.items()
        },
        given,
    )

    pieces = np.array_split(np.arange(shape[0]), len(ranks))
    for dtype in SUMMABLE:
        whole = reduced(ranks, shape, dtype, np.sum)
        rows = whole[pieces[ranks.index(rank)]]
        for name, expected in (("allreduce", whole), ("reducescatter", rows)):
            np.testing.assert_array_equal(
                np.asarray(results[dtype][name]).astype(expected.dtype), expected, f"{name} of {dtype}"
            )
            assert_same(results[dtype][name], expected, dtype)


@pytest.mark.parametrize("way", [eagerly, in_jit])
def test_averages(way, members, rank):
    ranks = members.ranks
    if rank not in ranks:
        return
    floats = [dtype for dtype in REDUCIBLE if "float" in dtype or "complex" in dtype]
    shape = (2 * len(ranks), 3)
    given = {dtype: value_of(rank, shape, dtype) for dtype in floats}

    rows, whole = way(
        lambda arrays: [reduce(arrays, process_set=members) for reduce in (hvd.reducescatter, hvd.allreduce)],
        given,
    )

    mine = slice(2 * ranks.index(rank), 2 * ranks.index(rank) + 2)
    for dtype in floats:
        expected = reduced(ranks, shape, dtype, np.mean)
        assert_same(rows[dtype], expected[mine], dtype)
        assert_same(whole[dtype], expected, dtype)


EXTREMES = {hvd.Min: np.min, hvd.Max: np.max, hvd.Product: np.prod}


@pytest.mark.parametrize("way", [eagerly, in_jit])
def test_extremes_and_products(way, members, rank):
    ranks = members.ranks
    if rank not in ranks:
        return
    dtypes = [dtype for dtype in REDUCIBLE if not dtype.startswith("complex")]
    given = {dtype: [value_of(rank, shape, dtype) for shape in SHAPES] for dtype in dtypes}

    results = way(
        lambda arrays: {op: hvd.allreduce(arrays, op=op, process_set=members) for op in EXTREMES}, given
    )

    for dtype in dtypes:
        for index, shape in enumerate(SHAPES):
            values = np.stack([np.asarray(value_of(other, shape, "int64")) for other in ranks])
            for op, how in EXTREMES.items():
                expected = how(values, axis=0).astype(given[dtype][index].dtype)  # integers wrap around
                assert_same(results[op][dtype][index], expected, dtype)
