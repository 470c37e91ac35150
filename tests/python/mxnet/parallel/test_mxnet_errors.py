"""What does not fit together raises on every rank, where a dependent array is read."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest
from mxnet_cases import assert_same

import horovod.mxnet as hvd

ERRORS = (mx.base.MXNetError, RuntimeError)

pytestmark = pytest.mark.disagreement


def test_shapes_that_differ_raise_at_the_read(rank):
    result = hvd.allreduce(mx.nd.ones((2 + rank,)), name="shapes")

    with pytest.raises(ERRORS, match=r"allreduce\.shapes.*rank 0 sent \[2\]"):
        result.asnumpy()


def test_dtypes_that_differ_raise_at_the_read_of_what_depends(rank):
    x = mx.nd.ones((2,), dtype="float32" if rank == 0 else "float64")
    hvd.allreduce_(x, name="dtypes")
    later = (x + 1) * 2

    with pytest.raises(ERRORS, match="dtypes"):
        later.wait_to_read()


def test_roots_that_differ(rank):
    with pytest.raises(ERRORS, match="root"):
        hvd.broadcast(mx.nd.ones((2,)), rank, name="roots").asnumpy()


def test_a_root_that_is_not_there(size):
    with pytest.raises(ERRORS, match="root"):
        hvd.broadcast(mx.nd.ones((2,)), size, name="no root").asnumpy()


def test_operations_that_differ(rank):
    with pytest.raises(ERRORS):
        hvd.allreduce(mx.nd.ones((2,)), op=hvd.Sum if rank == 0 else hvd.Max, name="ops").asnumpy()


def test_groups_fail_as_a_whole(rank):
    results = hvd.grouped_allreduce([mx.nd.ones((2,)), mx.nd.ones((2 + rank,))], name="group")

    # MXNet throws the exception of an operation once, wherever it is read first.
    with pytest.raises(ERRORS, match="group"):
        results[rank % 2].asnumpy()


@pytest.mark.parametrize(
    "operation",
    [
        lambda rank: hvd.allgather(mx.nd.ones((2, 2 + rank)), name="g"),
        lambda rank: hvd.grouped_allgather([mx.nd.ones((2, 2 + rank))], name="g"),
        lambda rank: hvd.alltoall(mx.nd.ones((6, 2 + rank)), name="a"),
        lambda rank: hvd.reducescatter(mx.nd.ones((6, 2 + rank)), name="r"),
    ],
    ids=["allgather", "grouped_allgather", "alltoall", "reducescatter"],
)
def test_what_blocks_raises_where_it_is_called(operation, rank):
    with pytest.raises(mx.base.MXNetError):
        operation(rank)


def test_ranks_outside_of_a_set_are_told(rank, process_set):
    if process_set.included():
        return
    with pytest.raises(ERRORS):
        hvd.allreduce(mx.nd.ones((2,)), process_set=process_set).asnumpy()


def test_the_name_is_free_after_an_error(rank, size):
    for _ in range(3):
        with pytest.raises(ERRORS):
            hvd.allreduce(mx.nd.ones((2 + rank,)), name="free").asnumpy()

    assert_same(hvd.allreduce(mx.nd.ones((2,)), op=hvd.Sum, name="free"), np.full((2,), float(size)))


def test_what_depends_on_a_failed_operation_is_left_out_on_every_rank(rank, size):
    x = hvd.allreduce(mx.nd.ones((2 + rank,)), name="first")
    left_out = hvd.allreduce_(x, name="left out")
    later = hvd.allreduce(mx.nd.ones((2,)), op=hvd.Sum, name="left out")

    assert_same(later, np.full((2,), float(size)))
    with pytest.raises(ERRORS, match="first"):
        left_out.asnumpy()
