"""What is refused, where, and with which exception."""

from __future__ import annotations

import pytest
import torch

import horovod.torch as hvd

disagreement = pytest.mark.disagreement


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_unsupported_dtypes(dtype: torch.dtype) -> None:
    tensor = torch.zeros(4, dtype=dtype)

    for call in (
        lambda: hvd.allreduce(tensor),
        lambda: hvd.allreduce_async_(tensor),
        lambda: hvd.allgather(tensor),
        lambda: hvd.broadcast_(tensor, 0),
        lambda: hvd.alltoall(tensor),
        lambda: hvd.reducescatter(tensor),
        lambda: hvd.grouped_allreduce([tensor]),
    ):
        with pytest.raises(ValueError, match="not supported"):
            call()


def test_non_contiguous_tensors() -> None:
    tensor = torch.zeros(4, 6).t()

    for call in (
        lambda: hvd.allreduce(tensor),
        lambda: hvd.allreduce_(tensor),
        lambda: hvd.allgather_async(tensor),
        lambda: hvd.broadcast(tensor, 0),
        lambda: hvd.reducescatter(tensor),
        lambda: hvd.alltoall_async(tensor),
        lambda: hvd.grouped_allreduce_([tensor]),
    ):
        with pytest.raises(ValueError, match="contiguous"):
            call()


def test_sparse_and_other_objects() -> None:
    with pytest.raises(ValueError, match="sparse"):
        hvd.allreduce(torch.zeros(3).to_sparse())
    with pytest.raises(ValueError, match=r"expected a torch\.Tensor, got list"):
        hvd.allreduce_async([1.0])  # type: ignore[arg-type]


def test_average_and_op_together() -> None:
    with pytest.raises(ValueError, match="op and average"):
        hvd.allreduce(torch.ones(1), average=True, op=hvd.Sum)


@disagreement
def test_duplicate_name_leaves_the_first_pending(rank: int, size: int) -> None:
    if rank == 0:
        first = hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)
        with pytest.raises(ValueError, match="Duplicate tensor name"):
            hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)
        hvd.allreduce(torch.ones(1), name="go on")
    else:
        hvd.allreduce(torch.ones(1), name="go on")
        first = hvd.allreduce_async(torch.ones(2), name="twice", op=hvd.Sum)

    assert hvd.synchronize(first).tolist() == [size, size]


def test_unknown_process_sets() -> None:
    unregistered = hvd.ProcessSet([0])
    with pytest.raises(ValueError, match="not registered"):
        hvd.allreduce(torch.ones(1), process_set=unregistered)

    unknown = hvd.ProcessSet([0])
    unknown.process_set_id = 77
    for call in (
        lambda: hvd.allreduce(torch.ones(1), process_set=unknown),
        lambda: hvd.barrier(unknown),
        lambda: hvd.grouped_allreduce([torch.ones(1)], process_set=unknown),
    ):
        with pytest.raises(ValueError, match="77"):
            call()


@disagreement
def test_calls_of_foreign_process_sets(rank: int) -> None:
    only_zero = hvd.add_process_set([0])
    if rank != 0:
        with pytest.raises(ValueError, match="not a member"):
            hvd.allreduce(torch.ones(1), process_set=only_zero)
        with pytest.raises(ValueError, match="not a member"):
            only_zero.rank()
    else:
        with pytest.raises(ValueError, match="root"):
            hvd.broadcast(torch.ones(1), 1, process_set=only_zero)
    assert hvd.remove_process_set(only_zero)


def test_root_rank_that_does_not_exist(size: int) -> None:
    with pytest.raises(ValueError, match="root"):
        hvd.broadcast(torch.ones(1), size)


def test_splits_of_alltoall(size: int) -> None:
    tensor = torch.zeros(4 * size)
    wrong = [
        torch.ones((size, 1), dtype=torch.int32),
        torch.ones(size, dtype=torch.int64),
        torch.ones(size + 1, dtype=torch.int32),
        [5 * size] * size,
        [-1] * size,
    ]
    for splits in wrong:
        with pytest.raises(ValueError, match="split"):
            hvd.alltoall(tensor, splits)


@pytest.mark.parametrize(
    ("ranks", "reason"),
    [
        ([], r"process set \[\]: no ranks given, expected at least one"),
        ([0, 0], r"process set \[0, 0\]: rank 0 occurs twice"),
        ([0, 99], r"process set \[0, 99\]: rank 99 is outside the job of size \d"),
    ],
)
def test_ranks_that_make_no_process_set(ranks: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        hvd.add_process_set(ranks)


@disagreement
def test_process_sets_that_differ_between_ranks(rank: int) -> None:
    with pytest.raises(ValueError, match=r"process set ranks: rank 0 sent \[0\], rank 1 sent \[1\]"):
        hvd.add_process_set([min(rank, 1)])


@disagreement
def test_alltoall_that_does_not_come_out_even(size: int) -> None:
    with pytest.raises(ValueError, match="split"):
        hvd.alltoall(torch.zeros(size + 1))


def test_scalars() -> None:
    scalar = torch.tensor(1.0)
    with pytest.raises(IndexError, match="allgather: a tensor without dimensions"):
        hvd.allgather(scalar)
    with pytest.raises(IndexError, match="alltoall: a tensor without dimensions"):
        hvd.alltoall(scalar)
    with pytest.raises(IndexError, match="alltoall: a tensor without dimensions"):
        hvd.alltoall(scalar.requires_grad_(), splits=torch.ones(hvd.size(), dtype=torch.int32))
    with pytest.raises(ValueError, match="rank-zero"):
        hvd.reducescatter(scalar)
    with pytest.raises(ValueError, match="rank-zero"):
        hvd.grouped_reducescatter_async([scalar])
    for start in (hvd.allgather_async, hvd.alltoall_async):
        handle = start(scalar)
        with pytest.raises(hvd.HorovodInternalError, match="rank-zero"):
            hvd.synchronize(handle)
        assert hvd.synchronize(handle) is None


@pytest.mark.parametrize("op", ["Min", "Max", "Product", "Adasum"])
def test_operations_that_reducescatter_does_not_have(op: str) -> None:
    with pytest.raises(hvd.HorovodInternalError, match="only Average and Sum"):
        hvd.reducescatter_async(torch.ones(4), op=getattr(hvd, op))


def test_groups_on_different_devices() -> None:
    tensors = [torch.ones(1), torch.ones(1, device="meta")]

    with pytest.raises(hvd.HorovodInternalError, match="same device"):
        hvd.grouped_allreduce(tensors)


def test_empty_groups() -> None:
    with pytest.raises(ValueError, match="at least one"):
        hvd.grouped_allreduce([])


def check_error_on_all_ranks(handle: int, text: str) -> None:
    with pytest.raises(hvd.HorovodInternalError, match=text):
        hvd.synchronize(handle)
    # The handle is gone, the name is free, the job goes on.
    with pytest.raises(ValueError, match="not created or has been cleared"):
        hvd.poll(handle)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum, name="mismatch").item() == hvd.size()


@disagreement
class TestDisagreement:
    """Errors that the ranks have together come at synchronize, on all of them."""

    def test_shapes(self, rank: int) -> None:
        handle = hvd.allreduce_async(torch.ones(3 + rank), name="mismatch")
        check_error_on_all_ranks(handle, "Mismatched ALLREDUCE tensor shapes")

    def test_dtypes(self, rank: int) -> None:
        dtype = torch.float32 if rank % 2 else torch.int32
        handle = hvd.allreduce_async(torch.ones(3, dtype=dtype), name="mismatch")
        check_error_on_all_ranks(handle, "Mismatched data types")

    def test_operations(self, rank: int) -> None:
        handle = hvd.allreduce_async(torch.ones(3), name="mismatch", op=hvd.Sum if rank else hvd.Min)
        check_error_on_all_ranks(handle, "Mismatched reduction operation")

    def test_factors(self, rank: int) -> None:
        handle = hvd.allreduce_async(torch.ones(3), name="mismatch", prescale_factor=1.0 + rank)
        check_error_on_all_ranks(handle, "Mismatched prescale")

    def test_roots(self, rank: int) -> None:
        handle = hvd.broadcast_async(torch.ones(3), rank, name="mismatch")
        check_error_on_all_ranks(handle, "Mismatched BROADCAST root ranks")

    def test_inner_dimensions_of_allgather(self, rank: int) -> None:
        handle = hvd.allgather_async(torch.ones(2, 3 + rank), name="mismatch")
        check_error_on_all_ranks(handle, "Mismatched ALLGATHER tensor shapes")

    def test_number_of_dimensions_of_alltoall(self, rank: int, size: int) -> None:
        shape = (size, 1) if rank else (size,)
        handle = hvd.alltoall_async(torch.ones(shape), name="mismatch")
        check_error_on_all_ranks(handle, "Mismatched ALLTOALL tensor shapes")

    def test_shapes_of_reducescatter(self, rank: int) -> None:
        handle = hvd.reducescatter_async(torch.ones(4 + rank), name="mismatch")
        check_error_on_all_ranks(handle, "Mismatched REDUCESCATTER tensor shapes")

    def test_members_of_a_group(self, rank: int) -> None:
        handle = hvd.grouped_allreduce_async([torch.ones(1), torch.ones(2 + rank)], name="mismatch")
        check_error_on_all_ranks(handle, "Mismatched ALLREDUCE tensor shapes")


def test_calls_before_init_and_after_shutdown() -> None:
    hvd.shutdown()
    try:
        for query in (
            hvd.rank,
            hvd.size,
            hvd.local_rank,
            hvd.local_size,
            hvd.cross_rank,
            hvd.cross_size,
        ):
            with pytest.raises(ValueError, match=r"hvd\.init"):
                query()
        for call in (
            lambda: hvd.allreduce(torch.ones(1)),
            lambda: hvd.allreduce_async(torch.ones(1)),
            lambda: hvd.allgather(torch.ones(1)),
            lambda: hvd.broadcast_(torch.ones(1), 0),
            lambda: hvd.reducescatter(torch.ones(1)),
            lambda: hvd.alltoall(torch.ones(1), torch.ones(1, dtype=torch.int32)),
            hvd.join,
            hvd.barrier,
            lambda: hvd.broadcast_object(1),
        ):
            with pytest.raises(hvd.HorovodInternalError, match="init"):
                call()
        with pytest.raises(ValueError, match="init"):
            hvd.alltoall(torch.ones(1))
        for call in (
            lambda: hvd.add_process_set([0]),
            lambda: hvd.start_timeline("x"),
            hvd.stop_timeline,
        ):
            with pytest.raises(ValueError, match="init"):
                call()
    finally:
        hvd.init()
