"""Handles, names, join, sparse tensors, process sets and the life cycle."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
import torch
from torch_cases import assert_same, everybody

import horovod.torch as hvd
from horovod.torch import mpi_ops


def test_handles_are_counted_from_one_after_shutdown() -> None:
    hvd.shutdown()
    hvd.init()

    first = hvd.allreduce_async(torch.ones(1))
    with pytest.raises(ValueError, match="not supported"):
        hvd.allreduce_async(torch.ones(1, dtype=torch.complex64))
    third = hvd.allreduce_async(torch.ones(1))
    hvd.allreduce(torch.ones(1))
    hvd.allreduce_(torch.ones(1))
    sixth = hvd.grouped_allgather_async([torch.ones(1), torch.ones(1)])

    assert (first, third, sixth) == (1, 3, 6)
    assert set(mpi_ops._handle_map) == {1, 3, 6}
    for handle in (first, third, sixth):
        hvd.synchronize(handle)
    assert mpi_ops._handle_map == {}


def test_first_poll_finds_an_operation_under_way() -> None:
    handle = hvd.allreduce_async(torch.ones(1000))
    assert hvd.poll(handle) is False

    polls = 0
    while not hvd.poll(handle):
        polls += 1
        assert polls < 10_000_000

    hvd.synchronize(handle)
    with pytest.raises(ValueError, match="not created or has been cleared"):
        hvd.poll(handle)
    assert hvd.synchronize(handle) is None


def test_an_empty_name_is_none(size: int) -> None:
    handles = [
        hvd.allreduce_async(torch.ones(2), name="", op=hvd.Sum),
        hvd.allreduce_async(torch.ones(2), name="", op=hvd.Sum),
        hvd.grouped_allreduce_async([torch.ones(2)], name="", op=hvd.Sum),
        hvd.grouped_allreduce_async([torch.ones(2)], name="", op=hvd.Sum),
    ]
    hvd.allreduce_(torch.ones(2), name="")
    hvd.broadcast_(torch.ones(2), 0, name="")

    for handle in handles:
        result = hvd.synchronize(handle)
        assert_same(result[0] if isinstance(result, tuple) else result, torch.full((2,), float(size)))


def test_unknown_handles() -> None:
    assert hvd.synchronize(123_456) is None
    with pytest.raises(ValueError, match="123456"):
        hvd.poll(123_456)


def test_tensors_of_dropped_handles_stay_alive(size: int) -> None:
    mpi_ops._handle_map.pop(hvd.allreduce_async_(torch.ones(1_000_000), op=hvd.Sum))

    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size


def test_names_in_the_timeline(tmp_path: Path, rank: int) -> None:
    path = tmp_path / "timeline.json"
    hvd.start_timeline(path, mark_cycles=True)
    hvd.allreduce(torch.ones(1), name="a")
    hvd.allgather(torch.ones(1), name="b")
    hvd.broadcast_(torch.ones(1), 0, name="c")
    hvd.alltoall(torch.ones(hvd.size()), name="d")
    hvd.reducescatter(torch.ones(hvd.size()), name="e")
    hvd.grouped_allreduce([torch.ones(1), torch.ones(2)], name="f")
    hvd.broadcast_object(1, name="g")
    hvd.barrier()
    hvd.stop_timeline()

    if rank == 0:
        text = path.read_text()
        json.loads(text)
        for name in (
            "allreduce.a",
            "allgather.b",
            "broadcast.c",
            "alltoall.d",
            "reducescatter.e",
            "grouped_allreduce.f_1of2",
            "broadcast.g.sz",
            "broadcast.g.t",
            "CYCLE_START",
        ):
            assert name in text


def test_operations_from_several_threads(size: int) -> None:
    results: dict[int, float] = {}

    def work(number: int) -> None:
        for step in range(10):
            results[number] = hvd.allreduce(
                torch.tensor([float(number)]), name=f"t{number}.{step}", op=hvd.Sum
            ).item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert results == {i: float(i * size) for i in range(4)}


def test_join_with_uneven_data(rank: int, size: int) -> None:
    for step in range(rank + 1):
        takes_part = [r for r in everybody() if r >= step]
        result = hvd.allreduce(torch.ones(2), name=f"step.{step}", op=hvd.Average)
        assert_same(result, torch.full((2,), len(takes_part) / size))

    last = hvd.join()

    assert last == size - 1


def test_join_refuses_other_operations(rank: int, size: int) -> None:
    if size < 2:
        pytest.skip("one rank joins alone")
    if rank == 0:
        hvd.join()
        return
    with pytest.raises(hvd.HorovodInternalError, match="Join"):
        hvd.allgather(torch.ones(1), name="with joined ranks")
    assert hvd.join(device=-1) != 0


@pytest.mark.parametrize("op", ["Sum", "Average"])
def test_sparse_allreduce(op: str, rank: int, size: int) -> None:
    indices = torch.tensor([[0, rank + 1], [1, 1]])
    values = torch.tensor([1.0, 2.0])
    mine = torch.sparse_coo_tensor(indices, values, (size + 1, 2), check_invariants=True)

    result = hvd.sparse_allreduce_async(mine, name="sparse", op=getattr(hvd, op))()

    expected = torch.zeros(size + 1, 2)
    expected[0, 1] = size
    expected[1:, 1] = 2
    assert result.is_sparse
    assert_same(result.to_dense(), expected if op == "Sum" else expected / size)


def test_sparse_allreduce_of_nothing() -> None:
    empty = torch.sparse_coo_tensor(size=(4, 3), check_invariants=True)

    result = hvd.sparse_allreduce_async(empty, name="empty", op=hvd.Average)()

    assert tuple(result.shape) == (4, 3)
    assert result._nnz() == 0


def test_process_sets_come_and_go(rank: int, size: int) -> None:
    if size < 2:
        pytest.skip("the only set is the global one")
    assert mpi_ops._basics._get_process_set_ids_and_ranks() == {0: everybody()}

    first = hvd.add_process_set([0])
    second = hvd.add_process_set(hvd.ProcessSet(range(1, size)))
    with pytest.raises(ValueError, match="exists already"):
        hvd.add_process_set([0])
    with pytest.raises(ValueError, match="exists already"):
        hvd.add_process_set(everybody())

    assert mpi_ops._basics._get_process_set_ids_and_ranks() == {
        0: everybody(),
        1: [0],
        2: list(range(1, size)),
    }
    assert (first.size(), second.size()) == (1, size - 1)
    assert first.included() == (rank == 0)
    mine = first if rank == 0 else second
    assert mine.rank() == max(rank - 1, 0)
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=mine).item() == mine.size()
    hvd.barrier(mine)
    assert str(first) == "ProcessSet(process_set_id=1, ranks=[0], mpi_comm=None)"

    assert hvd.remove_process_set(first) is True
    assert first.process_set_id is None
    assert first.size() is None
    assert first.rank() is None
    assert hvd.remove_process_set(first) is False
    assert hvd.remove_process_set(hvd.global_process_set) is False
    again = hvd.add_process_set(first)
    assert again is first
    assert again.process_set_id == 1
    assert hvd.remove_process_set(again)
    assert hvd.remove_process_set(second)


def test_static_process_sets(rank: int, size: int) -> None:
    if size < 2:
        pytest.skip("the only set is the global one")
    sets = [hvd.ProcessSet([0]), hvd.ProcessSet(range(1, size))]
    hvd.shutdown()
    hvd.init(process_sets=sets)

    assert [s.process_set_id for s in sets] == [1, 2]
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum, process_set=sets[min(rank, 1)]).item() == (
        1 if rank == 0 else size - 1
    )
    hvd.init(process_sets=[hvd.ProcessSet([0])])

    hvd.shutdown()
    hvd.init()


@pytest.mark.parametrize("duplicate", ["global", "earlier"])
def test_duplicates_among_static_process_sets(duplicate: str, size: int) -> None:
    if size < 2:
        pytest.skip("the only set is the global one")
    first, last = hvd.ProcessSet([0]), hvd.ProcessSet(everybody() if duplicate == "global" else [0])
    hvd.shutdown()
    with pytest.raises(ValueError, match="process set 1 of init is a duplicate"):
        hvd.init(process_sets=[first, last])

    assert hvd.is_initialized()
    assert first.process_set_id == 1
    assert last.process_set_id is None
    assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size

    hvd.shutdown()
    hvd.init()


def test_wrong_static_process_sets(rank: int, size: int) -> None:
    for ranks in ([0, 0], [size], [-1]):
        hvd.shutdown()
        with pytest.raises(ValueError, match="process set"):
            hvd.init(process_sets=[hvd.ProcessSet(ranks)])
        assert not hvd.is_initialized()
    if size > 1:
        with pytest.raises(ValueError, match="process sets"):
            hvd.init(process_sets=[hvd.ProcessSet([rank % 2])])
    hvd.init()


def test_dynamic_as_a_word() -> None:
    hvd.shutdown()
    before = os.environ.pop("HOROVOD_DYNAMIC_PROCESS_SETS", None)
    hvd.init(process_sets="Dynamic")

    assert os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] == "1"
    if before is not None:
        os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = before
    if hvd.size() > 1:
        hvd.remove_process_set(hvd.add_process_set([0]))


def test_adding_sets_without_permission() -> None:
    hvd.shutdown()
    before = os.environ.pop("HOROVOD_DYNAMIC_PROCESS_SETS", None)
    try:
        hvd.init()
        with pytest.raises(ValueError, match="HOROVOD_DYNAMIC_PROCESS_SETS"):
            hvd.add_process_set([0])
    finally:
        hvd.shutdown()
        if before is not None:
            os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = before
        hvd.init()


def test_init_again_keeps_rank_and_size(rank: int, size: int) -> None:
    for _ in range(3):
        assert hvd.allreduce(torch.ones(1), op=hvd.Sum).item() == size
        hvd.shutdown()
        assert not hvd.is_initialized()
        hvd.shutdown()
        hvd.init()
        assert (hvd.rank(), hvd.size()) == (rank, size)
        assert hvd.global_process_set.ranks == everybody()


def test_place_in_the_job(rank: int, size: int) -> None:
    assert 0 <= rank < size
    assert (hvd.local_rank(), hvd.local_size()) == (rank, size)
    assert (hvd.cross_rank(), hvd.cross_size()) == (0, 1)
    assert mpi_ops.is_homogeneous() is True
    assert (hvd.gloo_built(), hvd.gloo_enabled(), hvd.mpi_enabled()) == (True, True, False)
    assert hvd.mpi_built() == (shutil.which("mpirun") is not None)
    # PyTorch for CUDA, which old releases are, brings the library with it.
    assert (hvd.nccl_built() > 0) == (torch.version.cuda is not None)
    for is_built in (hvd.cuda_built, hvd.rocm_built, hvd.sycl_built, hvd.ddl_built, hvd.ccl_built):
        assert is_built() is False
    with pytest.raises(ValueError, match="MPI"):
        hvd.mpi_threads_supported()


def test_timeline_that_was_not_armed(tmp_path: Path) -> None:
    hvd.shutdown()
    before = os.environ.pop("HOROVOD_TIMELINE", None)
    try:
        hvd.init()
        with pytest.raises(ValueError, match="HOROVOD_TIMELINE=DYNAMIC"):
            hvd.start_timeline(tmp_path / "t.json")
    finally:
        hvd.shutdown()
        if before is not None:
            os.environ["HOROVOD_TIMELINE"] = before
        hvd.init()
