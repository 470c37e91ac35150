"""Collectives of torch.distributed on the backend "horovod"."""

from __future__ import annotations

from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch_cases import ALL_DTYPES, assert_same, everybody, sum_of, value_of
from torch_distributed_world import world  # noqa: F401

import horovod.torch as hvd

pytestmark = [
    pytest.mark.usefixtures("world"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks"),
]

SHAPE = (5, 3)
MOVED_DTYPES = [*ALL_DTYPES, torch.bool, torch.complex64, torch.float8_e4m3fn]


def test_the_world_is_the_job(rank: int, size: int) -> None:
    assert dist.get_backend() == "horovod"
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_all_reduce_adds(dtype: torch.dtype, *, is_async: bool, rank: int) -> None:
    tensor = value_of(rank, SHAPE, dtype)

    work = dist.all_reduce(tensor, async_op=is_async)
    if is_async:
        work.wait()

    assert_same(tensor, sum_of(everybody(), SHAPE, dtype))


@pytest.mark.parametrize("op", ["AVG", "MIN", "MAX", "PRODUCT"])
def test_all_reduce_with_other_operations(op: str, rank: int) -> None:
    tensor = value_of(rank, SHAPE, torch.float32)
    everything = torch.stack([value_of(r, SHAPE, torch.float32) for r in everybody()])
    expected = {
        "AVG": everything.mean(0),
        "MIN": everything.amin(0),
        "MAX": everything.amax(0),
        "PRODUCT": everything.prod(0),
    }[op]

    dist.all_reduce(tensor, getattr(dist.ReduceOp, op))

    torch.testing.assert_close(tensor, expected)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64], ids=str)
@pytest.mark.parametrize("op", ["BAND", "BOR", "BXOR"])
def test_all_reduce_bitwise(op: str, dtype: torch.dtype, rank: int) -> None:
    values = [value_of(r, SHAPE, torch.int64) & (3 if dtype != torch.bool else 1) for r in everybody()]
    values = [value.to(dtype) for value in values]
    combiner = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[op]
    expected = values[0]
    for value in values[1:]:
        expected = combiner(expected, value)
    tensor = values[rank].clone()

    dist.all_reduce(tensor, getattr(dist.ReduceOp, op))

    assert torch.equal(tensor, expected)


def test_bitwise_of_floats_is_refused() -> None:
    with pytest.raises(ValueError, match="integer or bool"):
        dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)


def test_all_reduce_multiplies_first(rank: int) -> None:
    tensor = value_of(rank, SHAPE, torch.float32)

    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))

    assert_same(tensor, sum_of(everybody(), SHAPE, torch.float32) * 0.5)


def test_all_reduce_of_complex_numbers(rank: int, size: int) -> None:
    tensor = torch.tensor([1 + 2j, rank * 1j], dtype=torch.complex64)

    dist.all_reduce(tensor)

    expected = torch.tensor([size * (1 + 2j), sum(range(size)) * 1j], dtype=torch.complex64)
    torch.testing.assert_close(tensor, expected)


def test_all_reduce_of_a_tensor_with_gaps(rank: int) -> None:
    whole = torch.zeros(4, 6)
    whole[:, ::2] = value_of(rank, (4, 3), torch.float32)

    dist.all_reduce(whole[:, ::2])

    assert_same(whole[:, ::2].contiguous(), sum_of(everybody(), (4, 3), torch.float32))
    assert not whole[:, 1::2].any()


def test_all_reduce_of_a_sparse_tensor(rank: int, size: int) -> None:
    tensor = torch.sparse_coo_tensor([[0, rank + 1]], [1.0, 2.0], (size + 1,))

    dist.all_reduce(tensor)

    assert tensor.to_dense().tolist() == [float(size)] + [2.0] * size


@pytest.mark.filterwarnings("ignore:.*all_reduce_coalesced will be deprecated:UserWarning")
def test_all_reduce_coalesced(rank: int) -> None:
    tensors = [value_of(rank, SHAPE, torch.float32), value_of(rank, (7,), torch.int64)]

    with dist._coalescing_manager() as manager:
        dist.all_reduce(tensors[0])
    dist.all_reduce_coalesced([tensors[1]])
    del manager

    assert_same(tensors[0], sum_of(everybody(), SHAPE, torch.float32))
    assert_same(tensors[1], sum_of(everybody(), (7,), torch.int64))


def test_reduce_changes_the_root_alone(rank: int, size: int) -> None:
    tensor = value_of(rank, SHAPE, torch.float32)

    dist.reduce(tensor, dst=size - 1)

    mine = value_of(rank, SHAPE, torch.float32)
    assert_same(tensor, sum_of(everybody(), SHAPE, torch.float32) if rank == size - 1 else mine)


@pytest.mark.parametrize("dtype", MOVED_DTYPES, ids=str)
def test_broadcast(dtype: torch.dtype, rank: int, size: int) -> None:
    tensor = value_of(rank, SHAPE, torch.float32).to(dtype)

    dist.broadcast(tensor, src=size - 1)

    expected = value_of(size - 1, SHAPE, torch.float32).to(dtype)
    assert torch.equal(tensor.view(torch.uint8), expected.view(torch.uint8))


@pytest.mark.parametrize("dtype", MOVED_DTYPES, ids=str)
def test_all_gather(dtype: torch.dtype, rank: int, size: int) -> None:
    mine = value_of(rank, SHAPE, torch.float32).to(dtype)
    apart = [torch.empty(SHAPE, dtype=dtype) for _ in range(size)]
    together = torch.empty((size * SHAPE[0], SHAPE[1]), dtype=dtype)
    of_one_block = list(torch.empty((size, *SHAPE), dtype=dtype))

    dist.all_gather(apart, mine)
    dist.all_gather(of_one_block, mine)
    dist.all_gather_into_tensor(together, mine)

    for r in everybody():
        expected = value_of(r, SHAPE, torch.float32).to(dtype).view(torch.uint8)
        assert torch.equal(apart[r].view(torch.uint8), expected)
        assert torch.equal(of_one_block[r].view(torch.uint8), expected)
        assert torch.equal(together[r * 5 : r * 5 + 5].view(torch.uint8), expected)


def test_all_gather_of_different_sizes(rank: int, size: int) -> None:
    outputs = [torch.empty(r + 1, 2) for r in range(size)]

    dist.all_gather(outputs, value_of(rank, (rank + 1, 2), torch.float32))

    for r in everybody():
        assert_same(outputs[r], value_of(r, (r + 1, 2), torch.float32))


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_gather_and_scatter(*, is_async: bool, rank: int, size: int) -> None:
    root = size - 1
    gathered = [torch.empty(SHAPE) for _ in everybody()] if rank == root else None
    parts = [value_of(10 + r, SHAPE, torch.float32) for r in everybody()] if rank == root else None
    scattered = torch.empty(SHAPE)

    works = [
        dist.gather(value_of(rank, SHAPE, torch.float32), gathered, dst=root, async_op=is_async),
        dist.scatter(scattered, parts, src=root, async_op=is_async),
    ]
    for work in works:
        if work is not None:
            work.wait()

    assert_same(scattered, value_of(10 + rank, SHAPE, torch.float32))
    for r, tensor in enumerate(gathered or []):
        assert_same(tensor, value_of(r, SHAPE, torch.float32))


@pytest.mark.parametrize("op", ["SUM", "AVG", "MAX"])
def test_reduce_scatter(op: str, rank: int, size: int) -> None:
    everything = [value_of(r, (size, 4), torch.float32) for r in everybody()]
    stacked = torch.stack(everything)
    total = {"SUM": stacked.sum(0), "AVG": stacked.mean(0), "MAX": stacked.amax(0)}[op]
    operation = getattr(dist.ReduceOp, op)
    of_list, of_tensor = torch.empty(4), torch.empty(4)

    dist.reduce_scatter(of_list, [row.clone() for row in everything[rank]], operation)
    dist.reduce_scatter_tensor(of_tensor, everything[rank].view(-1), operation)

    torch.testing.assert_close(of_list, total[rank])
    torch.testing.assert_close(of_tensor, total[rank])


def test_reduce_scatter_of_different_sizes(rank: int, size: int) -> None:
    output = torch.empty(rank + 1)

    dist.reduce_scatter(output, [value_of(rank, (r + 1,), torch.float32) for r in range(size)])

    assert_same(output, sum_of(everybody(), (rank + 1,), torch.float32))


def test_all_to_all(rank: int, size: int) -> None:
    sent = [torch.full((r + 1,), 10.0 * rank + r) for r in range(size)]
    received = [torch.empty(rank + 1) for _ in range(size)]
    even_in = torch.arange(size * 2, dtype=torch.int32).view(size, 2) + 100 * rank
    even_out = torch.empty_like(even_in)
    uneven_out = torch.empty((rank + 1) * size)

    dist.all_to_all(received, sent)
    dist.all_to_all_single(even_out, even_in)
    dist.all_to_all_single(uneven_out, torch.cat(sent), [rank + 1] * size, [r + 1 for r in range(size)])

    for r in everybody():
        assert received[r].tolist() == [10.0 * r + rank] * (rank + 1)
        assert even_out[r].tolist() == [100 * r + 2 * rank, 100 * r + 2 * rank + 1]
    assert torch.equal(uneven_out, torch.cat(received))


def test_barrier_and_objects(rank: int, size: int) -> None:
    objects: list[object] = [None] * size
    shared = [{"from": rank}]

    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    dist.broadcast_object_list(shared, src=0)

    assert objects == [{"rank": r, "text": "x" * r} for r in range(size)]
    assert shared == [{"from": 0}]


def test_a_work_can_be_asked_and_chained(rank: int, size: int) -> None:
    tensor = value_of(rank, SHAPE, torch.float32)

    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)

    expected = sum_of(everybody(), SHAPE, torch.float32)
    assert_same(doubled.wait(), expected * 2)
    work.wait()
    assert work.is_completed()
    assert work.is_success()
    assert work.exception() is None
    assert_same(work.result()[0], expected)
    assert size == len(everybody())


def test_asynchronous_collectives_of_two_groups_may_cross(rank: int, size: int) -> None:
    first, second = dist.new_group(), dist.new_group()
    tensors = [torch.ones(20000), torch.full((20000,), 2.0)]
    order = [(tensors[0], first), (tensors[1], second)]

    works = [dist.all_reduce(t, group=g, async_op=True) for t, g in order[:: 1 - 2 * (rank % 2)]]
    for work in works:
        work.wait()

    assert tensors[0].eq(size).all()
    assert tensors[1].eq(2 * size).all()


@pytest.mark.disagreement
def test_a_collective_that_not_all_call_ends_at_its_time_limit(rank: int) -> None:
    group = dist.new_group(timeout=timedelta(seconds=1))

    if rank == 0:
        with pytest.raises(RuntimeError, match="did not complete within 1 s"):
            dist.all_reduce(torch.ones(3), group=group)
    hvd.barrier()


@pytest.mark.disagreement
def test_ranks_that_disagree_about_the_size_get_an_error(rank: int) -> None:
    group = dist.new_group()

    with pytest.raises(RuntimeError, match=r"shape|size"):
        dist.all_gather_into_tensor(
            torch.empty(dist.get_world_size() * (rank + 1)), torch.ones(rank + 1), group=group
        )


@pytest.mark.disagreement
def test_monitored_barrier_names_the_missing(rank: int, size: int, world: dist.ProcessGroup) -> None:  # noqa: F811
    world.monitored_barrier(timedelta(seconds=30))
    group = dist.new_group()

    if rank == 0:
        with pytest.raises(RuntimeError, match=f"rank {size - 1} did not come"):
            group.monitored_barrier(timedelta(seconds=1), wait_all_ranks=True)
    elif rank < size - 1:
        with pytest.raises(RuntimeError):
            group.monitored_barrier(timedelta(seconds=2))
    hvd.barrier()


def test_destroyed_and_made_again(rank: int, size: int) -> None:
    for _ in range(2):
        dist.destroy_process_group()
        dist.init_process_group("horovod", init_method="horovod://")
        group = dist.new_group()
        tensor = torch.tensor([float(rank)])
        dist.all_reduce(tensor, group=group)
        assert tensor.item() == sum(range(size))
