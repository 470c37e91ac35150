"""Collectives that move data: broadcast, gathers, scatter and alltoall.

Wherever every rank gives the same amount, the amount is an inner dimension, so that ranks which
disagree get an error instead of overwriting memory. Where amounts differ the core allocates, and the
result is compared with what torch expects before it is copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from horovod._core import _native, codes
from horovod.torch._devices import HOST, device_of, on_own_device
from horovod.torch._tensors import DTYPES
from horovod.torch.distributed import _buffers
from horovod.torch.distributed._group import Operation
from horovod.torch.distributed._work import CompletedWork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch.distributed import Work

    from horovod.torch.distributed._group import Group

    Finish = Callable[[int], None]
    TensorList = list[torch.Tensor]


def broadcast(group: Group, tensor: torch.Tensor, root: int, opts: Any) -> Work:
    """Fills the tensor with what the root's holds."""
    plain = _buffers.plain_copy(tensor) if group.rank == root else _buffers.plain_space(tensor)
    code, count = _buffers.moved(plain)
    finish = None
    if plain is not tensor and group.rank != root:

        def finish(_: int) -> None:
            _buffers.give_back(tensor, plain)

    where = _buffers.address(plain)
    operation = Operation(
        codes.BROADCAST, code, (count,), where, where, plain, [tensor], finish,
        root=group.members.ranks[root], device=device_of(plain),
    )  # fmt: skip
    return group.submit(operation, opts)


# ---- gathers


def gather_rows(
    group: Group,
    source: torch.Tensor,
    rows: torch.Tensor,
    outputs: TensorList,
    finish: Finish | None,
    opts: Any,
) -> Work:
    """Plain tensors: rows[r] becomes the source of group rank r."""
    code, count = _buffers.moved(source)
    positions = group.members.positions

    def reorder_and_finish(handle: int) -> None:
        rows.copy_(rows[positions])
        if finish is not None:
            finish(handle)

    operation = Operation(
        codes.ALLGATHER, code, (1, count), _buffers.address(source), _buffers.address(rows),
        (source, rows), outputs, finish if positions is None else reorder_and_finish,
        device=device_of(source),
    )  # fmt: skip
    return group.submit(operation, opts)


def all_gather_single(group: Group, outputs: TensorList, inputs: TensorList, opts: Any) -> Work:
    """Each output gets the inputs of all ranks, one after the other."""
    for output, source in zip(outputs, inputs, strict=True):
        if output.numel() != source.numel() * group.size or output.dtype != source.dtype:
            message = (
                f"all_gather: expected an output of {source.numel()} x {group.size} elements of "
                f"{source.dtype}, got {output.numel()} of {output.dtype}"
            )
            raise ValueError(message)
    _buffers.check_one_device("all_gather", [*outputs, *inputs])
    sources = [_buffers.plain_copy(source) for source in inputs]
    targets = [_buffers.plain_space(output) for output in outputs]
    if len(sources) == 1:
        rows = targets[0].view(group.size, *sources[0].shape)
        finish = _copying(outputs, targets)
        return gather_rows(group, sources[0], rows, outputs, finish, opts)
    described = [
        (_buffers.moved(s)[0], (1, _buffers.moved(s)[1]), _buffers.address(s),
         _buffers.address(t), None)
        for s, t in zip(sources, targets, strict=True)
    ]  # fmt: skip

    def finish_many(handle: int) -> None:
        if group.members.positions is not None:
            for target in targets:
                rows = target.view(group.size, -1)
                rows.copy_(rows[group.members.positions])
        copy = _copying(outputs, targets)
        if copy is not None:
            copy(handle)

    return group.submit_many(
        codes.ALLGATHER, described, (sources, targets), outputs, finish_many, opts,
        device=device_of(sources[0]) if sources else HOST,
    )  # fmt: skip


def all_gather_list(group: Group, outputs: TensorList, source: torch.Tensor, opts: Any) -> Work:
    """The form with one output per rank, which may differ in size."""
    if len(outputs) != group.size:
        message = f"all_gather: expected {group.size} outputs, got {len(outputs)}"
        raise ValueError(message)
    _buffers.check_one_device("all_gather", [source, *outputs])
    plain = _buffers.plain_copy(source)
    if any(output.numel() != plain.numel() for output in outputs) and group.size > 1:
        return _all_gather_uneven(group, outputs, plain, opts)
    if _buffers.is_one_block(outputs):
        flat = outputs[0].as_strided((group.size, plain.numel()), (plain.numel(), 1))
        return gather_rows(group, plain, flat, outputs, None, opts)
    rows = torch.empty((group.size, plain.numel()), dtype=plain.dtype, device=plain.device)

    def finish(_: int) -> None:
        for output, row in zip(outputs, rows, strict=True):
            output.detach().copy_(row.view(output.shape))

    return gather_rows(group, plain, rows, outputs, finish, opts)


def _all_gather_uneven(
    group: Group,
    outputs: TensorList,
    plain: torch.Tensor,
    opts: Any,
) -> Work:
    code, count = _buffers.moved(plain)

    def finish(handle: int) -> None:
        parts = _split(_buffers.take_output(handle, plain.dtype), _in_set_order(group, outputs))
        for output, part in zip(_in_set_order(group, outputs), parts, strict=True):
            output.detach().copy_(part.view(output.shape))

    operation = Operation(
        codes.ALLGATHER, code, (count,), _buffers.address(plain), 0, plain, outputs, finish,
        device=device_of(plain),
    )  # fmt: skip
    return group.submit(operation, opts)


def gather_uneven(group: Group, tensor: torch.Tensor) -> torch.Tensor:
    """All ranks' tensors joined along the first dimension, in the order of the set; blocks."""
    gathered: TensorList = []
    code = DTYPES[tensor.dtype]

    def finish(handle: int) -> None:
        gathered.append(_buffers.take_output(handle, tensor.dtype))

    operation = Operation(
        codes.ALLGATHER, code, tuple(tensor.shape), _buffers.address(tensor), 0, tensor, [], finish,
        device=device_of(tensor),
    )  # fmt: skip
    group.submit(operation, None).wait()
    return gathered[0].view(-1, *tensor.shape[1:])


def gather(
    group: Group,
    outputs: TensorList,
    source: torch.Tensor,
    root: int,
    opts: Any,
) -> Work:
    """Only the root receives: an alltoall in which everybody sends to it alone."""
    _buffers.check_one_device("gather", [source, *outputs])
    plain = _buffers.plain_copy(source)
    item = _buffers.elements_per_item(plain)
    splits = [0] * group.size
    splits[_position(group, root)] = plain.numel() * item

    def finish(handle: int) -> None:
        if group.rank != root:
            return
        ordered = _in_set_order(group, outputs)
        parts = _split(_buffers.take_output(handle, plain.dtype), ordered)
        for output, part in zip(ordered, parts, strict=True):
            output.detach().copy_(part.view(output.shape))

    return _exchange(group, plain, splits, outputs, finish, opts)


def scatter(
    group: Group,
    output: torch.Tensor,
    parts: TensorList,
    root: int,
    opts: Any,
) -> Work:
    """Only the root sends."""
    _buffers.check_one_device("scatter", [output, *parts])
    if group.rank == root:
        if len(parts) != group.size:
            message = f"scatter: the root needs {group.size} tensors, got {len(parts)}"
            raise ValueError(message)
        ordered = [_buffers.plain_copy(part).reshape(-1) for part in _in_set_order(group, parts)]
        plain = torch.cat(ordered)
        splits = [part.numel() * _buffers.elements_per_item(plain) for part in ordered]
    else:
        plain = torch.empty(0, dtype=output.dtype, device=on_own_device(output))
        splits = [0] * group.size

    def finish(handle: int) -> None:
        received = _split(_buffers.take_output(handle, output.dtype), [output])[0]
        output.detach().copy_(received.view(output.shape))

    return _exchange(group, plain, splits, [output], finish, opts)


# ---- alltoall


def all_to_all_single(
    group: Group,
    output: torch.Tensor,
    source: torch.Tensor,
    output_splits: Sequence[int],
    input_splits: Sequence[int],
    opts: Any,
) -> Work:
    """Rows of the first dimension go to the ranks in turn."""
    if not output_splits and not input_splits and group.members.positions is None:
        return _all_to_all_even(group, output, source, opts)
    sent = _parts_of(group, source, input_splits)
    received = _parts_of(group, output, output_splits)
    return all_to_all_list(group, received, sent, opts, [output])


def _all_to_all_even(group: Group, output: torch.Tensor, source: torch.Tensor, opts: Any) -> Work:
    if source.numel() % group.size or source.numel() != output.numel():
        message = (
            f"all_to_all_single without splits: expected input and output of the same size, a "
            f"multiple of {group.size}, got {source.numel()} and {output.numel()}"
        )
        raise ValueError(message)
    _buffers.check_one_device("all_to_all_single", [output, source])
    plain, target = _buffers.plain_copy(source), _buffers.plain_space(output)
    if plain is target:  # the core reads the input while others write the output
        plain = plain.clone()
    code, count = _buffers.moved(plain)
    operation = Operation(
        codes.ALLTOALL, code, (group.size, count // group.size), _buffers.address(plain),
        _buffers.address(target), (plain, target), [output], _copying([output], [target]),
        device=device_of(plain),
    )  # fmt: skip
    return group.submit(operation, opts)


def all_to_all_list(
    group: Group,
    received: TensorList,
    sent: TensorList,
    opts: Any,
    outputs: TensorList | None = None,
) -> Work:
    """sent[r] goes to rank r, received[r] comes from it."""
    if len(received) != group.size or len(sent) != group.size:
        message = (
            f"all_to_all: expected {group.size} tensors to send and to receive, "
            f"got {len(sent)} and {len(received)}"
        )
        raise ValueError(message)
    _buffers.check_one_device("all_to_all", [*received, *sent])
    ordered = [_buffers.plain_copy(part).reshape(-1) for part in _in_set_order(group, sent)]
    plain = torch.cat(ordered)
    splits = [part.numel() * _buffers.elements_per_item(plain) for part in ordered]

    def finish(handle: int) -> None:
        targets = _in_set_order(group, received)
        parts = _split(_buffers.take_output(handle, plain.dtype), targets)
        for target, part in zip(targets, parts, strict=True):
            target.detach().copy_(part.view(target.shape))

    return _exchange(group, plain, splits, received if outputs is None else outputs, finish, opts)


def _exchange(
    group: Group,
    plain: torch.Tensor,
    splits: list[int],
    outputs: TensorList,
    finish: Finish,
    opts: Any,
) -> Work:
    code, count = _buffers.moved(plain)
    operation = Operation(
        codes.ALLTOALL, code, (count,), _buffers.address(plain), 0, plain, outputs, finish,
        splits=splits, device=device_of(plain),
    )  # fmt: skip
    return group.submit(operation, opts)


def _parts_of(group: Group, tensor: torch.Tensor, splits: Sequence[int]) -> TensorList:
    if not splits:
        if tensor.shape[0] % group.size:
            message = (
                f"all_to_all_single: {tensor.shape[0]} rows cannot be split evenly to {group.size} ranks"
            )
            raise ValueError(message)
        splits = [tensor.shape[0] // group.size] * group.size
    if sum(splits) != tensor.shape[0]:
        message = f"all_to_all_single: splits {list(splits)} do not add up to {tensor.shape[0]} rows"
        raise ValueError(message)
    return list(torch.split(tensor.detach(), list(splits)))


# ---- others


def barrier(group: Group, opts: Any) -> Work:
    """An asynchronous barrier is an allreduce of one element."""
    if not getattr(opts, "asyncOp", True):
        group.sequence += 1
        _native.barrier(group.members.process_set, group.seconds_of(opts))
        return CompletedWork([])
    token = torch.zeros(1, dtype=torch.uint8)
    where = token.data_ptr()
    operation = Operation(codes.ALLREDUCE, DTYPES[torch.uint8], (1,), where, where, token, [], None)
    return group.submit(operation, opts)


# ---- groups whose order is not that of the global ranks


def to_set_order(group: Group, tensor: torch.Tensor) -> torch.Tensor:
    """The equal parts of a plain tensor, one per group rank, in the order of the core's set."""
    if group.members.positions is None:
        return tensor
    parts = list(tensor.view(group.size, -1))
    return torch.stack(_in_set_order(group, parts))


def _position(group: Group, rank: int) -> int:
    positions = group.members.positions
    return rank if positions is None else positions[rank]


def _in_set_order(group: Group, parts: TensorList) -> TensorList:
    positions = group.members.positions
    if positions is None:
        return parts
    return [part for _, part in sorted(zip(positions, parts, strict=True), key=lambda p: p[0])]


def _split(received: torch.Tensor, targets: TensorList) -> Sequence[torch.Tensor]:
    expected = [target.numel() for target in targets]
    if sum(expected) != received.numel():
        message = (
            f"received {received.numel()} elements where {expected} were expected: "
            "sender and receiver disagree on sizes"
        )
        raise ValueError(message)
    return torch.split(received, expected)


def _copying(outputs: TensorList, targets: TensorList) -> Finish | None:
    if all(target is output for output, target in zip(outputs, targets, strict=True)):
        return None

    def finish(_: int) -> None:
        for output, target in zip(outputs, targets, strict=True):
            _buffers.give_back(output, target)

    return finish
