"""Groups of some ranks, and messages between two."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch_cases import assert_same, everybody, sum_of, value_of
from torch_distributed_world import world  # noqa: F401
from torch_releases import needs_order

import horovod.torch as hvd

pytestmark = [
    pytest.mark.usefixtures("world"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def test_groups_of_some_ranks_work_on_their_own(rank: int, size: int) -> None:
    halves = [[r for r in range(size) if r % 2 == half] for half in (0, 1)]
    groups = [dist.new_group(half) if half else None for half in halves]
    mine = halves[rank % 2]
    group = groups[rank % 2]
    tensor = value_of(rank, (4,), torch.float32)
    gathered = [torch.empty(4) for _ in mine]
    root = value_of(rank, (4,), torch.float32)

    dist.all_reduce(tensor, group=group)
    dist.all_gather(gathered, value_of(rank, (4,), torch.float32), group=group)
    dist.broadcast(root, src=mine[-1], group=group)

    assert_same(tensor, sum_of(mine, (4,), torch.float32))
    assert_same(root, value_of(mine[-1], (4,), torch.float32))
    for r, part in zip(mine, gathered, strict=True):
        assert_same(part, value_of(r, (4,), torch.float32))


@needs_order
def test_a_group_keeps_the_order_it_was_given(rank: int, size: int) -> None:
    order = list(reversed(range(size)))
    group = dist.distributed_c10d._new_group_with_tag(order, sort_ranks=False)
    gathered = torch.empty(size, dtype=torch.int64)
    scattered = torch.empty(1)
    exchanged = torch.empty(size)

    dist.all_gather_into_tensor(gathered, torch.tensor([rank]), group=group)
    dist.reduce_scatter_tensor(scattered, torch.arange(float(size)), group=group)
    dist.all_to_all_single(exchanged, torch.arange(float(size)) + 10 * rank, group=group)

    assert gathered.tolist() == order
    place = order.index(rank)
    assert scattered.item() == size * place
    assert exchanged.tolist() == [10.0 * r + place for r in order]


def test_groups_can_be_made_and_destroyed_many_times(rank: int, size: int) -> None:
    for number in range(20):
        group = dist.new_group()
        tensor = torch.tensor([float(rank + number)])
        dist.all_reduce(tensor, group=group)
        assert tensor.item() == sum(range(size)) + size * number
        dist.destroy_process_group(group)


@pytest.mark.disagreement
def test_a_ring_of_messages(rank: int, size: int) -> None:
    following, previous = (rank + 1) % size, (rank - 1) % size
    sent = value_of(rank, (1000, 30), torch.float32)
    received = torch.empty(1000, 30)

    operations = [
        dist.P2POp(dist.isend, sent, following),
        dist.P2POp(dist.irecv, received, previous),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()

    assert_same(received, value_of(previous, (1000, 30), torch.float32))


@pytest.mark.disagreement
def test_messages_by_tag_and_in_order(rank: int) -> None:
    if rank == 0:
        for number in range(300):
            dist.send(torch.tensor([number]), 1, tag=number % 2)
    elif rank == 1:
        received = {0: [], 1: []}
        for number in range(300):
            tensor = torch.empty(1, dtype=torch.int64)
            assert dist.recv(tensor, 0, tag=number % 2) == 0
            received[number % 2].append(int(tensor))
        assert received == {0: list(range(0, 300, 2)), 1: list(range(1, 300, 2))}
    hvd.barrier()


@pytest.mark.disagreement
def test_messages_in_both_directions_at_once(rank: int) -> None:
    if rank < 2:
        results = []
        works = [dist.isend(torch.full((50000,), float(10 * rank + n)), 1 - rank) for n in range(5)]
        for _ in range(5):
            results.append(torch.empty(50000))
            works.append(dist.irecv(results[-1], 1 - rank))
        for work in works:
            work.wait()
        for number, tensor in enumerate(results):
            assert tensor.eq(10 * (1 - rank) + number).all()
    hvd.barrier()


@pytest.mark.disagreement
def test_messages_inside_a_group(rank: int, size: int) -> None:
    group = dist.new_group([0, size - 1])
    if rank == 0:
        dist.send(torch.tensor([7.0]), dst=size - 1, group=group)
    elif rank == size - 1:
        tensor = torch.empty(1)
        dist.recv(tensor, src=0, group=group)
        assert tensor.item() == 7.0
    assert everybody()


@pytest.mark.disagreement
def test_messages_from_any_source(rank: int, size: int) -> None:
    senders = list(range(1, size)) * 2
    if rank == 0:
        found = []
        for _ in senders:
            tensor = torch.empty(3)
            source = dist.recv(tensor)
            assert tensor.tolist() == [float(source)] * 3
            found.append(source)
        assert sorted(found) == sorted(senders)
        last = torch.empty(1, 3)
        assert dist.recv(last, 1) == 1
        assert last.tolist() == [[9.0] * 3]
    else:
        for _ in range(2):
            dist.send(torch.full((3,), float(rank)), 0)
        if rank == 1:
            dist.send(torch.full((3,), 9.0), 0)
    hvd.barrier()
