"""Collectives that compute: allreduce, reduce, reduce_scatter and their coalesced forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from horovod._core import _native, codes
from horovod.torch._devices import HOST, device_of
from horovod.torch._tensors import DTYPES
from horovod.torch.distributed import _buffers, _movement
from horovod.torch.distributed._group import Operation
from horovod.torch.distributed._origin import origin_on
from horovod.torch.distributed._reduce_ops import PLAIN_OPS, combine, computable, kind_of, reduction_for
from horovod.torch.distributed._work import CompletedWork, JointWork

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.distributed import Work

    from horovod.torch.distributed._group import Group

    Finish = Callable[[int], None]


def allreduce(group: Group, tensor: torch.Tensor, op: object, opts: Any) -> Work:
    """Reduces in place."""
    if tensor.layout is not torch.strided:
        return _allreduce_sparse(group, tensor, op)
    code, reduce_op = DTYPES.get(tensor.dtype), PLAIN_OPS.get(kind_of(op))
    if code is not None and reduce_op is not None and _buffers.is_plain(tensor):
        return _allreduce_plain(group, tensor, code, reduce_op, opts)
    plain = _buffers.plain_copy(tensor)
    return _allreduce_into(group, plain, plain, [tensor], op, opts, _giving_back([tensor], [plain]))


def _allreduce_plain(group: Group, tensor: torch.Tensor, code: int, reduce_op: int, opts: Any) -> Work:
    """The case that DDP and most programs have, by the shortest way."""
    where, count, device = _buffers.address(tensor), tensor.numel(), device_of(tensor)
    origin = origin_on(device)
    handle = _native.submit(
        kind=codes.ALLREDUCE,
        dtype=code,
        reduce_op=reduce_op,
        process_set=group.members.process_set,
        progress=group.progress(count, opts),
        shape=(count,),
        input=where,
        output=where,
        owner=tensor,
        device=device,
        stream=0 if origin is None else origin.handle,
    )
    return group.started(handle, [tensor], None, opts, origin)


def reduce(group: Group, tensor: torch.Tensor, root: int, op: object, opts: Any) -> Work:
    """Reduces to one rank; the others' tensors stay as they are."""
    plain = _buffers.plain_copy(tensor)
    if group.rank != root:
        return _allreduce_into(group, plain, torch.empty_like(plain), [tensor], op, opts, None)
    return _allreduce_into(group, plain, plain, [tensor], op, opts, _giving_back([tensor], [plain]))


def _allreduce_into(
    group: Group,
    source: torch.Tensor,
    target: torch.Tensor,
    outputs: list[torch.Tensor],
    op: object,
    opts: Any,
    finish: Finish | None,
) -> Work:
    reduction = reduction_for(op, source.dtype)
    if reduction is None:
        return _combine_here(group, source, target, outputs, op, opts, finish)
    seen = computable(source)
    operation = Operation(
        codes.ALLREDUCE, DTYPES[seen.dtype], (seen.numel(),),
        _buffers.address(source), _buffers.address(target), (source, target), outputs, finish,
        reduce_op=reduction.code, factor=reduction.factor, device=device_of(source),
    )  # fmt: skip
    return group.submit(operation, opts)


def _combine_here(
    group: Group,
    source: torch.Tensor,
    target: torch.Tensor,
    outputs: list[torch.Tensor],
    op: object,
    opts: Any,
    finish: Finish | None,
) -> Work:
    """For operations that the core lacks: everybody gets everything and computes."""
    rows = torch.empty((group.size, *source.shape), dtype=source.dtype, device=source.device)

    def combine_and_finish(handle: int) -> None:
        target.copy_(combine(op, rows))
        if finish is not None:
            finish(handle)

    return _movement.gather_rows(group, source, rows, outputs, combine_and_finish, opts)


def _allreduce_sparse(group: Group, tensor: torch.Tensor, op: object) -> Work:
    """Gradients of sparse embeddings: entries are gathered and added. Blocks, as sizes must be known."""
    reduction = reduction_for(op, tensor.dtype)
    if reduction is None or reduction.code not in {codes.SUM, codes.AVERAGE}:
        message = f"all_reduce of a sparse tensor: expected SUM or AVG, got {op}"
        raise ValueError(message)
    entries = tensor.detach().cpu().coalesce()
    indices = _movement.gather_uneven(group, entries.indices().t().contiguous())
    values = _movement.gather_uneven(group, entries.values().contiguous())
    factor = reduction.factor / (group.size if reduction.code == codes.AVERAGE else 1)
    if factor != 1.0:
        values = values * factor
    total = torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()
    with torch.no_grad():  # not detach(): a detached sparse tensor has entries of its own
        tensor.copy_(total)
    return CompletedWork([tensor])


def allreduce_coalesced(group: Group, tensors: list[torch.Tensor], op: object, opts: Any) -> Work:
    """Reduces many tensors in one operation."""
    reductions = {reduction_for(op, tensor.dtype) for tensor in tensors}
    devices = {tensor.device for tensor in tensors}
    if len(reductions) > 1 or None in reductions or len(devices) > 1:
        return JointWork([allreduce(group, tensor, op, opts) for tensor in tensors])
    plains = [_buffers.plain_copy(tensor) for tensor in tensors]
    described = [_described(plain, (computable(plain).numel(),), plain) for plain in plains]
    reduction = reductions.pop() if reductions else None
    return group.submit_many(
        codes.ALLREDUCE, described, plains, tensors, _giving_back(tensors, plains), opts,
        reduce_op=codes.SUM if reduction is None else reduction.code,
        factor=1.0 if reduction is None else reduction.factor,
        device=device_of(plains[0]) if plains else HOST,
    )  # fmt: skip


def reduce_scatter_single(
    group: Group,
    outputs: list[torch.Tensor],
    inputs: list[torch.Tensor],
    op: object,
    opts: Any,
) -> Work:
    """Each rank gets its part of the reduced inputs, which have one equal part per rank."""
    for output, source in zip(outputs, inputs, strict=True):
        if source.numel() != output.numel() * group.size:
            message = (
                f"reduce_scatter: expected an input of {output.numel()} x {group.size} elements, "
                f"got {source.numel()}"
            )
            raise ValueError(message)
    _buffers.check_one_device("reduce_scatter", [*outputs, *inputs])
    reductions = {reduction_for(op, source.dtype) for source in inputs}
    reduction = next(iter(reductions), None)
    if len(reductions) > 1 or reduction is None or reduction.code not in {codes.SUM, codes.AVERAGE}:
        pairs = zip(outputs, inputs, strict=True)
        return JointWork([_reduce_then_cut(group, o, i, op, opts) for o, i in pairs])
    sources = [_movement.to_set_order(group, _buffers.plain_copy(source)) for source in inputs]
    targets = [_buffers.plain_space(output) for output in outputs]
    described = [
        _described(source, (group.size, computable(target).numel()), target)
        for source, target in zip(sources, targets, strict=True)
    ]
    return group.submit_many(
        codes.REDUCESCATTER, described, (sources, targets), outputs,
        _giving_back(outputs, targets), opts, reduce_op=reduction.code, factor=reduction.factor,
        device=device_of(sources[0]) if sources else HOST,
    )  # fmt: skip


def reduce_scatter_list(
    group: Group,
    output: torch.Tensor,
    parts: list[torch.Tensor],
    op: object,
    opts: Any,
) -> Work:
    """The form with one tensor per rank, which may differ in size."""
    if all(part.numel() == output.numel() for part in parts):
        if _buffers.is_one_block(parts):
            whole = parts[0].as_strided((len(parts), output.numel()), (output.numel(), 1))
        else:
            whole = torch.stack([part.reshape(-1) for part in parts])
        return reduce_scatter_single(group, [output], [whole], op, opts)
    whole = torch.cat([part.reshape(-1) for part in parts])
    start = sum(part.numel() for part in parts[: group.rank])
    return _reduce_then_cut(group, output, whole, op, opts, start)


def _reduce_then_cut(
    group: Group,
    output: torch.Tensor,
    source: torch.Tensor,
    op: object,
    opts: Any,
    start: int | None = None,
) -> Work:
    """For what the core's own form does not offer: reduce all of it and keep a part."""
    total = _buffers.plain_copy(source).clone().reshape(-1)
    begin = group.rank * output.numel() if start is None else start
    mine = total[begin : begin + output.numel()]

    def finish(_: int) -> None:
        output.detach().copy_(mine.view(output.shape))

    return _allreduce_into(group, total, total, [output], op, opts, finish)


def _described(
    source: torch.Tensor, shape: tuple[int, ...], target: torch.Tensor
) -> tuple[int, tuple[int, ...], int, int, str | None]:
    dtype = DTYPES[computable(source).dtype]
    return dtype, shape, _buffers.address(source), _buffers.address(target), None


def _giving_back(tensors: list[torch.Tensor], plains: list[torch.Tensor]) -> Finish | None:
    if all(plain is tensor for tensor, plain in zip(tensors, plains, strict=True)):
        return None

    def finish(_: int) -> None:
        for tensor, plain in zip(tensors, plains, strict=True):
            _buffers.give_back(tensor, plain)

    return finish
