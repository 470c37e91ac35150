from __future__ import annotations

import dataclasses

import pytest
import torch
from contents import dtype_of, object_of, tensor_of
from generator import generate
from program import Kind, Operation, Program, RankSet, TensorSpec
from reference import expected_object, expected_tensors
from tensor_specs import BYTES, DTYPES, FLOATS

WORLD = RankSet((0, 1, 2, 3), static=True)
PLAIN = Program(seed=0, hosts=(4,), settings=(), sets=(WORLD, RankSet((1, 3), static=True)), operations=())


def inputs_of(operation: Operation, ranks: tuple[int, ...] = WORLD.ranks) -> list[torch.Tensor]:
    return [tensor_of(operation, ranks, rank, 0) for rank in ranks]


def total(inputs: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(inputs).sum(dim=0, dtype=inputs[0].dtype)


def allreduce(dtype: str, **parts: object) -> Operation:
    operation = Operation(Kind.ALLREDUCE, tensors=(TensorSpec(dtype, (50,)),), seed=5)
    return dataclasses.replace(operation, **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("contents", ["bits", "steps", "small", "factors", "disjoint", "equal"])
def test_ranks_hold_different_values_that_anybody_can_compute(dtype: str, contents: str) -> None:
    operation = allreduce(dtype, contents=contents)

    first, second, *_ = inputs_of(operation)
    again, *_ = inputs_of(operation)

    assert first.dtype == dtype_of(dtype)
    assert first.shape == (50,)
    assert torch.equal(first.view(torch.uint8), again.view(torch.uint8))
    same = torch.equal(first.view(torch.uint8), second.view(torch.uint8))
    assert same == (contents == "equal")


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_averages_and_scaled_values_are_exact_in_every_float(dtype: str) -> None:
    for reduce in ("Sum", "Average"):
        operation = allreduce(dtype, reduce=reduce, prescale=2.0, postscale=0.5)
        wide = torch.stack([tensor.double() for tensor in inputs_of(operation)]).sum(dim=0)
        (result,) = expected_tensors(PLAIN, operation, 0)

        exact = wide / 4 if reduce == "Average" else wide

        assert torch.equal(result.double(), exact)


@pytest.mark.parametrize("dtype", BYTES)
def test_sums_of_steps_fit_into_bytes(dtype: str) -> None:
    operation = allreduce(dtype)

    (result,) = expected_tensors(PLAIN, operation, 0)

    assert torch.equal(result.long(), torch.stack([t.long() for t in inputs_of(operation)]).sum(dim=0))


def test_integers_wrap() -> None:
    operation = allreduce("uint8", contents="bits")

    (result,) = expected_tensors(PLAIN, operation, 0)

    assert torch.equal(result, total(inputs_of(operation)))


def test_averages_of_integers_are_truncated() -> None:
    operation = allreduce("int32", contents="small", reduce="Average")

    (result,) = expected_tensors(PLAIN, operation, 0)

    exact = torch.stack([t.double() for t in inputs_of(operation)]).sum(dim=0) / 4
    assert torch.equal(result, exact.trunc().int())
    assert not torch.equal(exact, exact.trunc())
    assert (exact < 0).any()


def test_joined_ranks_bring_zeros_and_are_counted() -> None:
    operation = allreduce("float32", reduce="Average", absent=(0, 2))
    _, one, _, three = inputs_of(operation)

    (result,) = expected_tensors(PLAIN, operation, 1)

    assert torch.equal(result, (one + three) / 4)


def test_truth_values_are_combined_by_and_and_or() -> None:
    inputs = torch.stack(inputs_of(allreduce("bool")))

    for reduce, expected in (("Min", inputs.all(0)), ("Max", inputs.any(0)), ("Sum", inputs.any(0))):
        (result,) = expected_tensors(PLAIN, allreduce("bool", reduce=reduce), 0)
        assert torch.equal(result, expected)


def test_rows_are_scattered_with_one_more_for_the_first() -> None:
    operation = Operation(Kind.REDUCESCATTER, tensors=(TensorSpec("int64", (6, 2)),), seed=3)
    whole = total(inputs_of(operation))

    parts = [expected_tensors(PLAIN, operation, rank)[0] for rank in range(4)]

    assert [len(part) for part in parts] == [2, 2, 1, 1]
    assert torch.equal(torch.cat(parts), whole)


def test_gathered_rows_come_in_rank_order_of_the_set() -> None:
    operation = Operation(Kind.ALLGATHER, 1, tensors=(TensorSpec("int32", (), (0, 3)),), seed=3)

    (result,) = expected_tensors(PLAIN, operation, 1)

    assert torch.equal(result, tensor_of(operation, (1, 3), 3, 0))


def test_rows_are_exchanged_by_splits() -> None:
    splits = ((1, 2), (0, 3))
    operation = Operation(Kind.ALLTOALL, 1, tensors=(TensorSpec("int32", (), (3, 3)),), splits=splits, seed=3)
    first, second = inputs_of(operation, (1, 3))

    result, received = expected_tensors(PLAIN, operation, 3)

    assert torch.equal(result, torch.cat((first[1:], second)))
    assert received.tolist() == [2, 3]


def test_objects_are_gathered_and_broadcast() -> None:
    gathered = Operation(Kind.ALLGATHER_OBJECT, 1, seed=9)
    sent = Operation(Kind.BROADCAST_OBJECT, root=2, seed=9)

    assert expected_object(PLAIN, gathered) == [object_of(gathered, 1), object_of(gathered, 3)]
    assert expected_object(PLAIN, sent) == object_of(sent, 2)


def test_adasum_adds_what_is_disjoint_and_keeps_what_is_equal() -> None:
    disjoint = allreduce("float32", reduce="Adasum", contents="disjoint")
    equal = allreduce("float32", reduce="Adasum", contents="equal")

    assert torch.equal(expected_tensors(PLAIN, disjoint, 0)[0], total(inputs_of(disjoint)))
    assert torch.equal(expected_tensors(PLAIN, equal, 0)[0], inputs_of(equal)[0])


def test_every_operation_of_a_program_has_a_result() -> None:
    program = generate(11)
    tensor_operations = [o for o in program.operations if o.tensors and o.disagrees is None]

    counts = [len(expected_tensors(program, o, program.members(o)[0])) for o in tensor_operations]

    assert counts == [len(o.tensors) + (o.kind is Kind.ALLTOALL) for o in tensor_operations]
