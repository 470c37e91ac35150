"""Reducescatter and grouped operations."""

from __future__ import annotations

import pytest
import torch
from torch_cases import ALL_DTYPES, assert_same, everybody, sum_of, value_of

import horovod.torch as hvd


def rows_of(tensor: torch.Tensor, rank: int, size: int) -> torch.Tensor:
    """Return the rows that a rank gets: the first ranks have one more."""
    each, longer = divmod(tensor.shape[0], size)
    start = rank * each + min(rank, longer)
    return tensor[start : start + each + (1 if rank < longer else 0)]


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(8,), (5, 3), (1,), (13, 2, 2)], ids=str)
def test_sum(shape: tuple[int, ...], dtype: torch.dtype, rank: int, size: int) -> None:
    mine = value_of(rank, shape, dtype)

    result = hvd.reducescatter(mine, op=hvd.Sum)
    later = hvd.synchronize(hvd.reducescatter_async(mine, name="scattered", op=hvd.Sum))

    expected = rows_of(sum_of(everybody(), shape, dtype), rank, size)
    assert_same(result, expected)
    assert_same(later, expected)


def test_average_with_factors_and_compression(rank: int, size: int) -> None:
    mine = value_of(rank, (9, 2), torch.float32)

    result = hvd.reducescatter(mine, prescale_factor=2.0, postscale_factor=0.25)
    compressed = hvd.reducescatter(mine, compression=hvd.Compression.fp16)
    grouped = hvd.grouped_reducescatter([mine, mine.double()], compression=hvd.Compression.fp16)

    average = rows_of(sum_of(everybody(), (9, 2), torch.float64) / size, rank, size)
    assert_same(result, (average * 0.5).float())
    torch.testing.assert_close(compressed, average.float(), rtol=1e-2, atol=0)
    torch.testing.assert_close(grouped[1], average, rtol=1e-2, atol=0)


def test_equal_rows_are_their_own_average_and_scaled_one_by_one(rank: int, size: int) -> None:
    mine = torch.randn(500, 9, generator=torch.Generator().manual_seed(7))

    average = hvd.reducescatter(mine)
    scaled = hvd.reducescatter(mine, op=hvd.Sum, prescale_factor=0.3)
    grouped = hvd.grouped_reducescatter([mine, mine.double()], prescale_factor=0.3)

    assert_same(average, rows_of(mine, rank, size))
    assert_same(scaled, rows_of(mine * 0.3 * size, rank, size))
    assert_same(grouped[0], rows_of(mine * 0.3, rank, size))
    assert_same(grouped[1], rows_of(mine.double() * 0.3, rank, size))


def test_process_set(process_set: hvd.ProcessSet, rank: int) -> None:
    members = process_set.ranks
    assert members is not None
    if not process_set.included():
        pytest.skip("not a member of the set")

    result = hvd.reducescatter(value_of(rank, (7,), torch.float32), op=hvd.Sum, process_set=process_set)

    expected = rows_of(sum_of(members, (7,), torch.float32), members.index(rank), len(members))
    assert_same(result, expected)


MIXED = [
    ((4,), torch.float32),
    ((3, 2), torch.int64),
    ((5,), torch.float16),
    ((1, 1, 1), torch.float64),
]


def test_grouped_allreduce_in_every_form(rank: int) -> None:
    def mine() -> list[torch.Tensor]:
        return [value_of(rank, shape, dtype) for shape, dtype in MIXED]

    expected = [sum_of(everybody(), shape, dtype) for shape, dtype in MIXED]

    out_of_place = hvd.grouped_allreduce(mine(), op=hvd.Sum)
    later = hvd.synchronize(hvd.grouped_allreduce_async(mine(), op=hvd.Sum, name="group"))
    tensors = mine()
    in_place = hvd.grouped_allreduce_(tensors, op=hvd.Sum)
    also_tensors = mine()
    hvd.synchronize(hvd.grouped_allreduce_async_(also_tensors, op=hvd.Sum))

    assert isinstance(out_of_place, list)
    assert isinstance(later, tuple)
    assert isinstance(in_place, tuple)
    assert all(a is b for a, b in zip(in_place, tensors, strict=True))
    for results in (out_of_place, later, tensors, also_tensors):
        for result, value in zip(results, expected, strict=True):
            assert_same(result, value)


def test_grouped_allreduce_with_factors(rank: int, size: int) -> None:
    tensors = [value_of(rank, (3,), torch.float32), value_of(rank, (2, 2), torch.float32)]

    results = hvd.grouped_allreduce(tensors, prescale_factor=0.5, compression=hvd.Compression.bf16)

    for result in results:
        expected = sum_of(everybody(), tuple(result.shape), torch.float64) / size / 2
        torch.testing.assert_close(result, expected.float(), rtol=1e-2, atol=0)


def test_grouped_allgather(rank: int) -> None:
    tensors = [value_of(rank, (rank + 1, 2), torch.float32), value_of(rank, (2,), torch.uint8)]

    results = hvd.grouped_allgather(tensors, name="gathered")
    later = hvd.synchronize(hvd.grouped_allgather_async(tensors))

    expected = [
        torch.cat([value_of(r, (r + 1, 2), torch.float32) for r in everybody()]),
        torch.cat([value_of(r, (2,), torch.uint8) for r in everybody()]),
    ]
    for got in (results, later):
        assert isinstance(got, tuple)
        assert_same(got[0], expected[0])
        assert_same(got[1], expected[1])


def test_grouped_reducescatter(rank: int, size: int) -> None:
    tensors = [value_of(rank, (6, 2), torch.float32), value_of(rank, (5,), torch.float64)]

    results = hvd.grouped_reducescatter(tensors, op=hvd.Sum)
    later = hvd.synchronize(hvd.grouped_reducescatter_async(tensors, name="rows", op=hvd.Sum))

    for got in (results, later):
        for result, tensor in zip(got, tensors, strict=True):
            total = sum_of(everybody(), tuple(tensor.shape), tensor.dtype)
            assert_same(result, rows_of(total, rank, size))
