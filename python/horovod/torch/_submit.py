"""Asynchronous operations on tensors, without autograd: each returns a handle.

Public forms and autograd functions are built on these.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from horovod._core import _native, codes, submit
from horovod._core.handles import Finish
from horovod._core.process_sets import ProcessSet
from horovod._core.submit import Reduction

from ._devices import is_direct
from ._handles import copy_back, copy_back_all, handles, order_all, order_one, take_all, take_one
from ._tensors import check_group, dtype_code, take, usable, view_of


def _kept(tensor: torch.Tensor, output: torch.Tensor) -> tuple[Finish | None, object]:
    """What a handle keeps: on a device also the input, which a stream may still read."""
    return (None, output) if tensor.is_cpu else (order_one, (output, tensor))


def allreduce(
    tensor: torch.Tensor,
    output: torch.Tensor | None,
    name: str | None,
    reduction: Reduction,
    process_set: ProcessSet,
) -> int:
    """Reduce into `output`, which may be the tensor itself; None: a new tensor."""
    number = handles.take_number()
    dtype_code(tensor)
    if output is None:
        output = torch.empty_like(tensor, requires_grad=False)
    if is_direct(tensor):
        native = submit.allreduce(view_of(tensor, output), output.data_ptr(), name, reduction, process_set)
        return handles.keep(number, native, *_kept(tensor, output))
    host = usable(tensor)
    native = submit.allreduce(view_of(host), host.data_ptr(), name, reduction, process_set)
    return handles.keep(number, native, copy_back, (output, host))


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor] | None,
    name: str | None,
    reduction: Reduction,
    process_set: ProcessSet,
) -> int:
    """Reduce several tensors as one operation."""
    number = handles.take_number()
    check_group("allreduce", tensors)
    if outputs is None:
        outputs = [torch.empty_like(tensor, requires_grad=False) for tensor in tensors]
    hosts = [usable(tensor) for tensor in tensors]
    pairs = list(zip(outputs, hosts, strict=True))
    is_staged = any(host is not tensor for host, tensor in zip(hosts, tensors, strict=True))
    targets = hosts if is_staged else outputs
    native = submit.group(
        codes.ALLREDUCE,
        "allreduce",
        [view_of(host) for host in hosts],
        [target.data_ptr() for target in targets],
        name,
        process_set,
        reduction=reduction,
        owner=pairs,
    )
    if is_staged:
        return handles.keep(number, native, copy_back_all, pairs)
    if tensors[0].is_cpu:
        return handles.keep(number, native, None, tuple(outputs))
    return handles.keep(number, native, order_all, (tuple(outputs), tuple(tensors)))


def allgather(tensor: torch.Tensor, name: str | None, process_set: ProcessSet) -> int:
    """Concatenate along dimension 0."""
    number = handles.take_number()
    dtype_code(tensor)
    native = submit.allgather(view_of(usable(tensor)), name, process_set)
    return handles.keep(number, native, take_one, tensor)


def grouped_allgather(tensors: Sequence[torch.Tensor], name: str | None, process_set: ProcessSet) -> int:
    """Concatenate several tensors as one operation."""
    number = handles.take_number()
    check_group("allgather", tensors)
    native = submit.group(
        codes.ALLGATHER,
        "allgather",
        [view_of(usable(tensor)) for tensor in tensors],
        [submit.CORE_ALLOCATES] * len(tensors),
        name,
        process_set,
    )
    return handles.keep(number, native, take_all, list(tensors))


def broadcast(
    tensor: torch.Tensor,
    output: torch.Tensor | None,
    root_rank: int,
    name: str | None,
    process_set: ProcessSet,
) -> int:
    """Give every rank the root's tensor in `output`, which may be the tensor; None: a new one."""
    number = handles.take_number()
    dtype_code(tensor)
    if output is None:
        output = torch.empty_like(tensor, requires_grad=False)
    if is_direct(tensor):
        native = submit.broadcast(view_of(tensor, output), output.data_ptr(), root_rank, name, process_set)
        return handles.keep(number, native, *_kept(tensor, output))
    host = usable(tensor)
    native = submit.broadcast(view_of(host), host.data_ptr(), root_rank, name, process_set)
    return handles.keep(number, native, copy_back, (output, host))


def _check_splits(splits: torch.Tensor) -> None:
    if splits.dim() != 1 or splits.dtype is not torch.int32:
        message = (
            f"alltoall expects a 1D int32 tensor of splits, got {splits.dtype} of shape {list(splits.shape)}"
        )
        raise ValueError(message)


def _finish_alltoall(
    native: int, kept: tuple[torch.Tensor, torch.device | None]
) -> tuple[torch.Tensor, torch.Tensor]:
    tensor, device = kept
    received = torch.tensor(_native.received_splits(native), dtype=torch.int32, device=device)
    return take(native, 0, tensor), received


def alltoall(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None,
    name: str | None,
    process_set: ProcessSet,
) -> int:
    """Exchange rows; the result is (output, received splits)."""
    number = handles.take_number()
    dtype_code(tensor)
    rows: list[int] | None = None
    device: torch.device | None = None
    if isinstance(splits, torch.Tensor):
        _check_splits(splits)
        rows, device = splits.tolist(), splits.device
    else:
        # As in the original, a call before init without a tensor of splits is a ValueError.
        process_set.size()
        if splits is not None:
            as_tensor = torch.tensor(splits, dtype=torch.int32, device="cpu")
            _check_splits(as_tensor)
            rows = as_tensor.tolist()
    native = submit.alltoall(view_of(usable(tensor)), rows, name, process_set)
    return handles.keep(number, native, _finish_alltoall, (tensor, device))


def reducescatter(
    tensor: torch.Tensor, name: str | None, reduction: Reduction, process_set: ProcessSet
) -> int:
    """Reduce, and keep this rank's rows."""
    number = handles.take_number()
    dtype_code(tensor)
    native = submit.reducescatter(view_of(usable(tensor)), name, reduction, process_set)
    return handles.keep(number, native, take_one, tensor)


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    reduction: Reduction,
    process_set: ProcessSet,
) -> int:
    """Reduce several tensors as one operation, and keep this rank's rows of each."""
    number = handles.take_number()
    check_group("reducescatter", tensors)
    native = submit.group(
        codes.REDUCESCATTER,
        "reducescatter",
        [view_of(usable(tensor)) for tensor in tensors],
        [submit.CORE_ALLOCATES] * len(tensors),
        name,
        process_set,
        reduction=reduction,
    )
    return handles.keep(number, native, take_all, list(tensors))
