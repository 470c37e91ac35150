"""Operations as parts of MXNet's engine: dependencies, names in flight, layouts, views, staging."""

from __future__ import annotations

import random

import mxnet as mx
import numpy as np
import pytest
from mxnet_cases import assert_same

import horovod.mxnet as hvd
from horovod.mxnet import _reductions


def test_a_chain_is_ordered_by_its_arrays(rank, size):
    x = mx.nd.ones((200, 200))
    for _ in range(5):
        x = mx.nd.dot(x, mx.nd.eye(200)) * 2
        hvd.allreduce_(x, op=hvd.Average, name="chain")
        x += 1

    assert_same(x, np.full((200, 200), 63.0))


def test_ranks_may_push_named_operations_in_any_order(rank, size):
    names = [f"any.{index}" for index in range(40)]
    mine = {name: mx.nd.full((10,), rank + 1) for name in names}
    random.Random(rank).shuffle(names)

    for name in names:
        hvd.allreduce_(mine[name], op=hvd.Sum, name=name, priority=random.Random(name).randrange(9))

    for array in mine.values():
        assert_same(array, np.full((10,), size * (size + 1) / 2))


def test_a_name_in_use_waits_for_its_turn(rank, size):
    results = [hvd.allreduce(mx.nd.full((4,), step), op=hvd.Sum, name="again") for step in range(100)]

    for step, result in enumerate(results):
        assert_same(result, np.full((4,), step * size))


def test_many_unnamed_operations_in_flight(rank, size):
    results = [hvd.allreduce(mx.nd.full((4,), step), op=hvd.Sum) for step in range(300)]

    for step, result in enumerate(results):
        assert_same(result, np.full((4,), step * size))


def test_arrays_may_be_freed_while_their_operations_wait(rank, size):
    for _ in range(50):
        x = mx.nd.dot(mx.nd.ones((100, 100)), mx.nd.ones((100, 100)))
        hvd.allreduce_(x, name="freed")
        hvd.allreduce(x, name="unread")
        del x
    mx.nd.waitall()


def test_a_group_may_hold_views_and_an_array_twice(rank, size):
    x = mx.nd.full((6, 2), rank + 1)
    y = mx.nd.full((3,), rank + 1)

    hvd.grouped_allreduce_([x[0:2], x[4:6], y, y], op=hvd.Sum, name="views")

    total = size * (size + 1) / 2
    assert_same(x[0:2], np.full((2, 2), total))
    assert_same(x[2:4], np.full((2, 2), rank + 1.0))
    assert_same(x[4:6], np.full((2, 2), total))
    assert_same(y, np.full((3,), total))


def convolved(rank: int) -> mx.nd.NDArray:
    """What a convolution leaves in a blocked layout."""
    x, w = mx.nd.full((2, 16, 8, 8), rank + 1), mx.nd.ones((16, 16, 3, 3))
    return mx.nd.Convolution(x, w, no_bias=True, kernel=(3, 3), num_filter=16)


def test_results_of_convolutions(rank, size):
    expected = np.full((2, 16, 6, 6), 144.0 * size * (size + 1) / 2)

    assert_same(hvd.allreduce(convolved(rank), op=hvd.Sum), expected)
    assert_same(hvd.grouped_allreduce([convolved(rank)], op=hvd.Sum)[0], expected)
    assert_same(hvd.broadcast(convolved(rank), 0), np.full((2, 16, 6, 6), 144.0))
    assert hvd.allgather(convolved(rank)).asnumpy().max() == 144.0 * size


def test_a_blocked_layout_in_place_is_refused(rank, size):
    with pytest.raises(mx.base.MXNetError, match="layout of oneDNN"):
        hvd.allreduce_(convolved(rank), op=hvd.Sum, name="blocked").asnumpy()


def test_memory_that_the_engine_has_still_to_allocate(rank, size):
    for step in range(300):
        mine = mx.nd.array(np.full((5, 3), step), dtype="int32")
        fresh = [hvd.allreduce(mine, op=hvd.Sum) for _ in range(3)]
        in_place = hvd.allreduce_(mine.copy(), op=hvd.Sum)

        for result in (*fresh, in_place):
            assert_same(result, np.full((5, 3), step * size))


def test_arrays_that_the_core_cannot_reach_are_staged(rank, size, monkeypatch):
    monkeypatch.setattr(_reductions, "is_on_host", lambda _tensor: False)
    mine = mx.nd.full((3, 2), rank + 1)
    total = np.full((3, 2), size * (size + 1) / 2)

    fresh = hvd.allreduce(mine, op=hvd.Sum)
    group = hvd.grouped_allreduce_([mine.copy()], op=hvd.Sum)
    hvd.allreduce_(mine, op=hvd.Sum)

    assert_same(fresh, total)
    assert_same(group[0], total)
    assert_same(mine, total)


@pytest.mark.parametrize("shape", [(0, 3), ()], ids=str)
def test_shapes_that_numpy_has(shape, size):
    with mx.util.np_shape():
        result = hvd.allreduce(mx.nd.ones(shape), op=hvd.Sum)

        assert result.shape == shape
        assert result.asnumpy().sum() == (size if shape == () else 0)
