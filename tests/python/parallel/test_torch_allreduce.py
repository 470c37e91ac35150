"""Allreduce over the ranks of the job."""

from __future__ import annotations

import math

import pytest
import torch
from torch_cases import ALL_DTYPES, FLOAT_DTYPES, SHAPES, assert_same, everybody, sum_of, value_of

import horovod.torch as hvd


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sum_in_every_form(shape: tuple[int, ...], dtype: torch.dtype, rank: int) -> None:
    mine = value_of(rank, shape, dtype)
    expected = sum_of(everybody(), shape, dtype)

    out_of_place = hvd.allreduce(mine, op=hvd.Sum)
    waited_for = hvd.synchronize(hvd.allreduce_async(mine, op=hvd.Sum, name="async"))
    in_place = mine.clone()
    returned = hvd.allreduce_(in_place, op=hvd.Sum)
    in_place_later = mine.clone()
    later = hvd.synchronize(hvd.allreduce_async_(in_place_later, op=hvd.Sum))

    assert_same(mine, value_of(rank, shape, dtype))
    for result in (out_of_place, waited_for, in_place, in_place_later):
        assert_same(result, expected)
    assert returned is in_place
    assert later is in_place_later


@pytest.mark.parametrize("dtype", FLOAT_DTYPES, ids=str)
def test_average_is_the_default(dtype: torch.dtype, rank: int, size: int) -> None:
    result = hvd.allreduce(value_of(rank, (4, 5), dtype))

    assert_same(result, (sum_of(everybody(), (4, 5), torch.float64) / size).to(dtype))


def equal_numbers(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Return numbers with all their digits in use, the same on every rank."""
    return torch.randn(count, generator=torch.Generator().manual_seed(7), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", FLOAT_DTYPES, ids=str)
@pytest.mark.parametrize("count", [1, 100, 50000])
def test_equal_numbers_are_their_own_average(count: int, dtype: torch.dtype) -> None:
    mine = equal_numbers(count, dtype)

    for _ in range(2):  # negotiated, then known
        result = hvd.allreduce(mine, name=f"equal.{count}.{dtype}")
        grouped = hvd.grouped_allreduce([mine, mine * 2], name=f"equal.group.{count}.{dtype}")

        assert_same(result, mine)
        assert_same(grouped[0], mine)
        assert_same(grouped[1], mine * 2)


@pytest.mark.parametrize("dtype", FLOAT_DTYPES, ids=str)
@pytest.mark.parametrize("count", [1, 100, 50000])
def test_prescaling_is_rounded_before_the_sum(count: int, dtype: torch.dtype, size: int) -> None:
    mine = equal_numbers(count, dtype)

    result = hvd.allreduce(mine, op=hvd.Sum, prescale_factor=0.3)
    average = hvd.allreduce(mine, prescale_factor=0.3)

    assert_same(result, mine * 0.3 * size)
    assert_same(average, mine * 0.3)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8], ids=str)
def test_average_of_integers_truncates(dtype: torch.dtype, rank: int, size: int) -> None:
    result = hvd.allreduce(value_of(rank, (9,), dtype), op=hvd.Average)

    expected = torch.trunc(sum_of(everybody(), (9,), torch.float64) / size).to(dtype)
    assert_same(result, expected)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
@pytest.mark.parametrize("op", ["Min", "Max", "Product"])
def test_other_operations(op: str, dtype: torch.dtype, rank: int) -> None:
    result = hvd.allreduce(value_of(rank, (6,), dtype), op=getattr(hvd, op))

    values = torch.stack([value_of(r, (6,), torch.int64) for r in everybody()])
    expected = {"Min": values.amin(0), "Max": values.amax(0), "Product": values.prod(0)}[op]
    assert_same(result, expected.to(dtype))


def test_bool_sum_is_or_and_product_is_and(rank: int, size: int) -> None:
    mine = torch.tensor([rank == 0, True, False])

    either = hvd.allreduce(mine, op=hvd.Sum)
    both = hvd.allreduce(mine, op=hvd.Product)

    assert either.tolist() == [True, True, False]
    assert both.tolist() == [size == 1, True, False]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, *FLOAT_DTYPES], ids=str)
@pytest.mark.parametrize("op", ["Sum", "Min"])
def test_prescale_and_postscale(op: str, dtype: torch.dtype, rank: int) -> None:
    result = hvd.allreduce(
        value_of(rank, (8,), dtype), op=getattr(hvd, op), prescale_factor=2.0, postscale_factor=1.5
    )

    values = torch.stack([value_of(r, (8,), torch.float64) * 2 for r in everybody()])
    combined = (values.sum(0) if op == "Sum" else values.amin(0)) * 1.5
    assert_same(result, combined.trunc().to(dtype) if not dtype.is_floating_point else combined.to(dtype))


def test_old_average_parameter(rank: int, size: int) -> None:
    mine = torch.ones(3) * (rank + 1)

    with pytest.warns(DeprecationWarning, match="average"):
        summed = hvd.allreduce(mine, average=False)
    with pytest.warns(DeprecationWarning, match="average"):
        averaged = hvd.allreduce(mine, average=True)

    assert_same(summed, torch.full((3,), size * (size + 1) / 2))
    assert_same(averaged, torch.full((3,), (size + 1) / 2))


def test_positional_arguments_of_old_scripts(size: int) -> None:
    tensor = torch.ones(2)

    hvd.allreduce_(tensor, None, "positional", hvd.Sum)

    assert tensor.tolist() == [size, size]


@pytest.mark.parametrize("compression", [hvd.Compression.fp16, hvd.Compression.bf16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.float16], ids=str)
@pytest.mark.parametrize("op", ["Sum", "Average", "Max"])
def test_compression_keeps_the_dtype(
    compression: type, dtype: torch.dtype, op: str, rank: int, size: int
) -> None:
    result = hvd.allreduce(value_of(rank, (7,), dtype), compression=compression, op=getattr(hvd, op))

    values = torch.stack([value_of(r, (7,), torch.float64) for r in everybody()])
    exact = {"Sum": values.sum(0), "Average": values.sum(0) / size, "Max": values.amax(0)}[op]
    assert result.dtype == dtype
    if dtype.is_floating_point:
        torch.testing.assert_close(result, exact.to(dtype), rtol=1e-2, atol=0)
    else:
        assert_same(result, exact.trunc().to(dtype))


def test_compressor_of_the_user_is_called(rank: int, size: int) -> None:
    class Doubling(hvd.Compression.none):  # type: ignore[name-defined, misc]
        @staticmethod
        def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, str]:
            return tensor * 2, "context"

        @staticmethod
        def decompress(tensor: torch.Tensor, ctx: str) -> torch.Tensor:
            assert ctx == "context"
            return tensor + 1

    result = hvd.allreduce(torch.ones(2), op=hvd.Sum, compression=Doubling)
    grouped = hvd.grouped_allreduce([torch.ones(2)], op=hvd.Sum, compression=Doubling)

    assert result.tolist() == [2 * size + 1] * 2
    assert_same(grouped[0], result)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_adasum_of_equal_tensors_is_the_tensor(dtype: torch.dtype) -> None:
    tensor = value_of(1, (11,), dtype)

    result = hvd.allreduce(tensor, op=hvd.Adasum)

    torch.testing.assert_close(result, tensor, rtol=1e-2, atol=0)


def test_adasum_of_orthogonal_tensors_is_the_sum(rank: int, size: int) -> None:
    tensor = torch.zeros(size)
    tensor[rank] = rank + 1

    result = hvd.allreduce(tensor, op=hvd.Adasum)

    torch.testing.assert_close(result, torch.arange(1.0, size + 1))


@pytest.mark.disagreement
def test_adasum_of_parallel_tensors_of_very_different_lengths_is_their_mean(rank: int, size: int) -> None:
    direction = torch.linspace(-1, 1, 1000)
    lengths = [1e-24, 1e19, *[0.0] * (size - 2)]

    result = hvd.allreduce(direction * lengths[rank], op=hvd.Adasum)

    torch.testing.assert_close(result, direction * (1e19 / 2))


def test_large_tensor(rank: int) -> None:
    count = 3_000_017
    tensor = torch.arange(count, dtype=torch.float32).remainder_(97).add_(rank)
    expected = torch.arange(count, dtype=torch.float32).remainder_(97) * hvd.size() + sum(everybody())

    assert torch.equal(hvd.allreduce(tensor, op=hvd.Sum), expected)
    assert torch.equal(hvd.allreduce_(tensor, op=hvd.Sum), expected)


def test_many_operations_in_flight_in_different_order(rank: int, size: int) -> None:
    names = [f"t{i}" for i in range(20)]
    order = names if rank % 2 == 0 else names[::-1]

    pending = {
        name: hvd.allreduce_async(torch.tensor([float(name[1:])]), name=name, op=hvd.Sum) for name in order
    }

    for name, handle in pending.items():
        assert hvd.synchronize(handle).item() == float(name[1:]) * size


def test_process_set(process_set: hvd.ProcessSet, rank: int) -> None:
    members = process_set.ranks
    assert members is not None
    if not process_set.included():
        pytest.skip("not a member of the set")

    summed = hvd.allreduce(value_of(rank, (5, 2), torch.float32), op=hvd.Sum, process_set=process_set)
    averaged = hvd.allreduce_(value_of(rank, (5, 2), torch.float32), process_set=process_set)

    assert_same(summed, sum_of(members, (5, 2), torch.float32))
    assert_same(averaged, sum_of(members, (5, 2), torch.float64).div(len(members)).float())


def test_adasum_in_a_process_set(process_set: hvd.ProcessSet) -> None:
    if not process_set.included():
        pytest.skip("not a member of the set")
    tensor = torch.arange(1.0, 6.0)

    result = hvd.allreduce(tensor, op=hvd.Adasum, process_set=process_set)

    torch.testing.assert_close(result, tensor)


def test_inputs_that_share_memory_with_parameters(size: int) -> None:
    parameter = torch.nn.Parameter(torch.ones(3))

    hvd.allreduce_(parameter.data, op=hvd.Sum)
    result = hvd.allreduce_(parameter, op=hvd.Sum)

    assert result is parameter
    assert parameter.tolist() == [float(size * size)] * 3


def test_nan_and_infinity_pass_through() -> None:
    result = hvd.allreduce(torch.tensor([math.nan, math.inf, 1.0]), op=hvd.Sum)

    assert result[0].isnan()
    assert result[1].isinf()
    assert result[2] == hvd.size()
