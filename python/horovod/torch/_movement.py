"""Operations that move tensors and do not combine them: allgather, broadcast, alltoall."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from horovod._core import _native, codes
from horovod._core.process_sets import ProcessSet, global_process_set, registered_id

from . import _autograd, _submit
from ._autograd import HorovodAllgather, HorovodAlltoall, HorovodBroadcast
from ._autograd_groups import HorovodGroupedAllgather
from ._compiling import compiled, is_compiling
from ._handles import handles, synchronize
from ._tensors import check_group, dtype_code


def allgather_async(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> int:
    """Start an allgather and return a handle for poll and synchronize.

    Arguments:
        tensor: its rows; the first dimension may differ between ranks, the others not.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    return _submit.allgather(tensor, name, process_set)


def _check_rows(tensor: torch.Tensor, what: str) -> None:
    if tensor.dim() == 0:
        message = f"{what}: a tensor without dimensions has no rows, expected at least one dimension"
        raise IndexError(message)


def allgather(
    tensor: torch.Tensor, name: str | None = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """Return the tensors of all ranks, concatenated along dimension 0. Differentiable.

    The ranks may have different sizes in dimension 0, and must agree about the others.

    Arguments:
        tensor: its rows; the first dimension may differ between ranks, the others not.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    _check_rows(tensor, "allgather")
    if is_compiling():
        traced: torch.Tensor = compiled().allgather(tensor, name, process_set)
        return traced
    if not _autograd.transforms_active():
        dtype_code(tensor)
    result: torch.Tensor
    if _autograd.is_wanted(tensor):
        result = HorovodAllgather.apply(tensor, process_set, name)
    else:
        result = synchronize(_submit.allgather(tensor, name, process_set))
    return result


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Start an allgather of several tensors as one operation; one handle for all.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allgather.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    return _submit.grouped_allgather(tensors, name, process_set)


def grouped_allgather(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> tuple[torch.Tensor, ...]:
    """Return several tensors, each concatenated over all ranks, in one call. Differentiable.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allgather.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    for tensor in tensors:
        _check_rows(tensor, "allgather")
    if not _autograd.transforms_active():
        check_group("allgather", tensors)
    result: tuple[torch.Tensor, ...]
    if any(_autograd.is_wanted(tensor) for tensor in tensors):
        result = HorovodGroupedAllgather.apply(process_set, name, *tensors)
    else:
        result = synchronize(_submit.grouped_allgather(tensors, name, process_set))
    return result


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Start a broadcast and return a handle for poll and synchronize.

    Arguments:
        tensor: what the root sends; of the same shape and dtype on the others.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    return _submit.broadcast(tensor, None, root_rank, name, process_set)


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Return the tensor of the root, a global rank also in a process set. Differentiable.

    Arguments:
        tensor: what the root sends; of the same shape and dtype on the others.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    if is_compiling():
        traced: torch.Tensor = compiled().broadcast(tensor, root_rank, name, process_set)
        return traced
    if not _autograd.transforms_active():
        dtype_code(tensor)
    result: torch.Tensor
    if _autograd.is_wanted(tensor):
        result = HorovodBroadcast.apply(tensor, root_rank, process_set, name)
    else:
        result = synchronize(_submit.broadcast(tensor, None, root_rank, name, process_set))
    return result


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Start a broadcast in place and return a handle for poll and synchronize.

    Arguments:
        tensor: what the root sends; of the same shape and dtype on the others.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    return _submit.broadcast(tensor, tensor, root_rank, name, process_set)


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Overwrite the tensor with that of the root, a global rank, and return it.

    Arguments:
        tensor: what the root sends; of the same shape and dtype on the others.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    if is_compiling():
        traced: torch.Tensor = compiled().broadcast_(tensor, root_rank, name, process_set)
        return traced
    if not tensor.is_cpu:
        synchronize(_submit.broadcast(tensor, tensor, root_rank, name, process_set))
        return tensor
    handles.take_number()
    address = tensor.data_ptr()
    _native.run(
        kind=codes.BROADCAST,
        dtype=dtype_code(tensor),
        process_set=registered_id(process_set),
        root_rank=root_rank,
        shape=tensor.shape,
        input=address,
        output=address,
        name=f"broadcast.{name}" if name else None,
        owner=tensor,
    )
    return tensor


def alltoall_async(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Start an alltoall; synchronize returns (output, received splits).

    Arguments:
        tensor: rows for the ranks of the set, in rank order.
        splits: how many rows each rank gets, in rank order: one integer per rank of the
            set. None: the same number each.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    return _submit.alltoall(tensor, splits, name, process_set)


def alltoall(
    tensor: torch.Tensor,
    splits: torch.Tensor | Sequence[int] | None = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Send splits[i] rows to rank i of the set, as many to each by default. Differentiable.

    Returns the rows received, in rank order; with splits also how many came from each rank.

    Arguments:
        tensor: rows for the ranks of the set, in rank order.
        splits: how many rows each rank gets, in rank order: one integer per rank of the
            set. None: the same number each.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    _check_rows(tensor, "alltoall")
    if is_compiling():
        traced: torch.Tensor | tuple[torch.Tensor, torch.Tensor] = compiled().alltoall(
            tensor, splits, name, process_set
        )
        return traced
    if not _autograd.transforms_active():
        dtype_code(tensor)
    output: torch.Tensor
    if _autograd.is_wanted(tensor):
        output, received = HorovodAlltoall.apply(tensor, splits, process_set, name)
    else:
        output, received = synchronize(_submit.alltoall(tensor, splits, name, process_set))
    return output if splits is None else (output, received)
