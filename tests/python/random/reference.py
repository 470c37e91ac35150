"""The results that a program must have, computed locally from the inputs of all ranks in the plainest way."""

from __future__ import annotations

import torch
from contents import object_of, tensor_of
from program import Kind, Operation, Program


def expected_tensors(program: Program, operation: Operation, rank: int) -> list[torch.Tensor]:
    """Results of a rank that takes part, one per tensor; alltoall: then the received splits."""
    members = program.sets[operation.process_set].ranks
    results = [_expected(operation, members, rank, index) for index in range(len(operation.tensors))]
    if operation.kind is Kind.ALLTOALL:
        place = members.index(rank)
        received = [_sent(operation, members, sender)[place] for sender in range(len(members))]
        results.append(torch.tensor(received, dtype=torch.int32))
    return results


def expected_object(program: Program, operation: Operation) -> object:
    """What every rank gets of an operation on objects."""
    if operation.kind is Kind.BROADCAST_OBJECT:
        return object_of(operation, operation.root)
    return [object_of(operation, rank) for rank in program.sets[operation.process_set].ranks]


def _expected(operation: Operation, members: tuple[int, ...], rank: int, index: int) -> torch.Tensor:
    if operation.kind is Kind.BROADCAST:
        return tensor_of(operation, members, operation.root, index)
    inputs = [tensor_of(operation, members, member, index) for member in members]
    if operation.kind is Kind.ALLGATHER:
        return torch.cat(inputs)
    if operation.kind is Kind.ALLTOALL:
        place = members.index(rank)
        parts = [
            torch.split(tensor, _sent(operation, members, sender))[place]
            for sender, tensor in enumerate(inputs)
        ]
        return torch.cat(parts)
    for place, member in enumerate(members):
        if member in operation.absent:
            inputs[place] = torch.zeros_like(inputs[place])
    reduced = _reduce(operation, inputs)
    if operation.kind is Kind.REDUCESCATTER:
        return torch.tensor_split(reduced, len(members))[members.index(rank)]
    return reduced


def _sent(operation: Operation, members: tuple[int, ...], sender: int) -> list[int]:
    """Rows from a member to each."""
    if operation.splits is not None:
        return list(operation.splits[sender])
    rows = operation.tensors[0].shape_of(sender)[0]
    return [rows // len(members)] * len(members)


def _reduce(operation: Operation, inputs: list[torch.Tensor]) -> torch.Tensor:
    dtype = inputs[0].dtype
    if dtype is torch.bool:
        all_of_them = operation.reduce in {"Min", "Product"}
        stacked = torch.stack(inputs)
        return stacked.all(dim=0) if all_of_them else stacked.any(dim=0)
    if operation.contents == "equal":
        # The first that takes part: joined ranks bring zeros, which Adasum leaves out.
        return next((tensor for tensor in inputs if tensor.any()), inputs[0])
    # Integers wrap in 64 bits as in fewer; scaled ones are small, and exact as floats.
    is_scaled = operation.prescale != 1.0 or operation.postscale != 1.0
    wide = torch.float64 if dtype.is_floating_point or is_scaled else torch.int64
    stacked = torch.stack([tensor.to(wide) for tensor in inputs])
    if is_scaled:
        stacked = stacked * operation.prescale
    combined = _combine(operation.reduce, stacked)
    if is_scaled:
        combined = combined * operation.postscale
    if operation.reduce == "Average":
        rounding = None if dtype.is_floating_point else "trunc"
        combined = torch.div(combined, len(inputs), rounding_mode=rounding)
    return combined.to(dtype)


def _combine(reduce: str, stacked: torch.Tensor) -> torch.Tensor:
    if reduce == "Min":
        return stacked.amin(dim=0)
    if reduce == "Max":
        return stacked.amax(dim=0)
    if reduce == "Product":
        return stacked.prod(dim=0)
    return stacked.sum(dim=0)
