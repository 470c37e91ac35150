"""Allgather, broadcast and alltoall."""

from __future__ import annotations

import pytest
import torch
from torch_cases import ALL_DTYPES, SHAPES, SHAPES_WITH_ROWS, assert_same, everybody, value_of

import horovod.torch as hvd

MOVED_DTYPES = [*ALL_DTYPES, torch.bool]


@pytest.mark.parametrize("dtype", MOVED_DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES_WITH_ROWS, ids=str)
def test_allgather(shape: tuple[int, ...], dtype: torch.dtype, rank: int) -> None:
    mine = value_of(rank, shape, dtype)

    result = hvd.allgather(mine)
    later = hvd.synchronize(hvd.allgather_async(mine, name="gathered"))

    expected = torch.cat([value_of(r, shape, dtype) for r in everybody()])
    assert_same(result, expected)
    assert_same(later, expected)


def test_allgather_of_different_numbers_of_rows(rank: int) -> None:
    result = hvd.allgather(value_of(rank, (rank % 3, 4), torch.float32))

    assert_same(result, torch.cat([value_of(r, (r % 3, 4), torch.float32) for r in everybody()]))


def test_allgather_result_outlives_the_next_operation(rank: int) -> None:
    first = hvd.allgather(torch.full((1000,), float(rank)))
    for _ in range(3):
        hvd.allgather(torch.zeros(1000))

    assert first[::1000].tolist() == [float(r) for r in everybody()]
    first.add_(1)


@pytest.mark.parametrize("dtype", MOVED_DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_broadcast_in_every_form(shape: tuple[int, ...], dtype: torch.dtype, rank: int, size: int) -> None:
    root = size - 1
    mine = value_of(rank, shape, dtype)
    expected = value_of(root, shape, dtype)

    result = hvd.broadcast(mine, root)
    later = hvd.synchronize(hvd.broadcast_async(mine, root, name="copy"))
    in_place = mine.clone()
    returned = hvd.broadcast_(in_place, root)
    in_place_later = mine.clone()
    hvd.synchronize(hvd.broadcast_async_(in_place_later, root))

    assert_same(mine, value_of(rank, shape, dtype))
    for tensor in (result, later, in_place, in_place_later):
        assert_same(tensor, expected)
    assert returned is in_place
    assert result.data_ptr() != mine.data_ptr() or mine.numel() == 0


def test_broadcast_from_every_root(rank: int, size: int) -> None:
    for root in range(size):
        assert hvd.broadcast(torch.tensor([rank]), root).item() == root


@pytest.mark.parametrize("dtype", MOVED_DTYPES, ids=str)
@pytest.mark.parametrize("inner", [(), (3,), (2, 2)], ids=str)
def test_alltoall_with_splits(inner: tuple[int, ...], dtype: torch.dtype, rank: int, size: int) -> None:
    # Rank r sends r + i rows to rank i.
    splits = [rank + i for i in range(size)]
    parts = [value_of(10 * rank + i, (rank + i, *inner), dtype) for i in range(size)]

    output, received = hvd.alltoall(torch.cat(parts), splits)
    later, received_later = hvd.synchronize(
        hvd.alltoall_async(torch.cat(parts), torch.tensor(splits, dtype=torch.int32), name="a2a")
    )

    expected = torch.cat([value_of(10 * r + rank, (r + rank, *inner), dtype) for r in range(size)])
    assert_same(output, expected)
    assert_same(later, expected)
    assert_same(received, torch.tensor([r + rank for r in range(size)], dtype=torch.int32))
    assert_same(received_later, received)


def test_alltoall_without_splits_returns_the_output_alone(rank: int, size: int) -> None:
    result = hvd.alltoall(torch.arange(2 * size) + 100 * rank)

    expected = torch.cat([torch.arange(2 * rank, 2 * rank + 2) + 100 * r for r in range(size)])
    assert_same(result, expected)


def test_alltoall_leaves_out_rows_beyond_the_splits(rank: int, size: int) -> None:
    output, received = hvd.alltoall(torch.arange(size + 3), splits=tuple([1] * size))

    assert output.tolist() == [rank] * size
    assert received.tolist() == [1] * size


def test_alltoall_of_nothing(size: int) -> None:
    output, received = hvd.alltoall(torch.zeros(0, 4), splits=[0] * size)

    assert tuple(output.shape) == (0, 4)
    assert received.tolist() == [0] * size


def test_process_set(process_set: hvd.ProcessSet, rank: int) -> None:
    members = process_set.ranks
    assert members is not None
    if not process_set.included():
        pytest.skip("not a member of the set")
    root = members[-1]

    gathered = hvd.allgather(torch.tensor([rank]), process_set=process_set)
    copied = hvd.broadcast_(torch.tensor([rank]), root, process_set=process_set)
    exchanged = hvd.alltoall(torch.full((len(members),), rank), process_set=process_set)

    assert gathered.tolist() == members
    assert copied.item() == root
    assert exchanged.tolist() == members
