"""Allreduce in all its forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from horovod._core import _native, codes
from horovod._core.average import resolve_op
from horovod._core.process_sets import ProcessSet, global_process_set, registered_id
from horovod._core.submit import Reduction

from . import _autograd, _submit
from ._autograd import HorovodAllreduce
from ._autograd_groups import HorovodGroupedAllreduce
from ._compiling import compiled, is_compiling
from ._handles import handles, synchronize
from ._tensors import check_group, dtype_code
from .compression import Compression, group_wire_dtype


def _run(
    tensor: torch.Tensor,
    output: torch.Tensor,
    name: str | None,
    op: int,
    prescale: float,
    postscale: float,
    wire: int,
    process_set: ProcessSet,
) -> None:
    """Reduce a tensor in host memory with one call of the core: the shortest way there is.

    Takes the parts of a Reduction one by one: to put them together costs more than all the rest.
    """
    handles.take_number()
    address = tensor.data_ptr()
    in_place = output is tensor
    _native.run(
        kind=codes.ALLREDUCE,
        dtype=dtype_code(tensor),
        reduce_op=op,
        process_set=registered_id(process_set),
        wire_dtype=wire,
        shape=tensor.shape,
        input=address,
        output=address if in_place else output.data_ptr(),
        prescale=prescale,
        postscale=postscale,
        name=f"allreduce.{name}" if name else None,
        owner=tensor if in_place else (tensor, output),
    )


def _allreduce(
    tensor: torch.Tensor, name: str | None, reduction: Reduction, process_set: ProcessSet
) -> torch.Tensor:
    if is_compiling():
        traced: torch.Tensor = compiled().allreduce(tensor, name, reduction, process_set)
        return traced
    if not _autograd.transforms_active():
        dtype_code(tensor)
    if _autograd.is_wanted(tensor):
        result: torch.Tensor = HorovodAllreduce.apply(tensor, reduction, process_set, name)
        return result
    if not tensor.is_cpu:
        staged: torch.Tensor = synchronize(_submit.allreduce(tensor, None, name, reduction, process_set))
        return staged
    output = torch.empty_like(tensor, requires_grad=False)
    _run(tensor, output, name, *reduction, process_set)
    return output


def allreduce_async(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Start an allreduce and return a handle for poll and synchronize.

    The tensor must not change before the operation is complete.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduction = Reduction(resolve_op(op, average), prescale_factor, postscale_factor)
    return _submit.allreduce(tensor, None, name, reduction, process_set)


def allreduce(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Return the tensors of all ranks combined by `op`, Average by default. Differentiable.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduce_op = resolve_op(op, average)
    wire = group_wire_dtype(compression, [tensor], reduce_op)
    if wire is not None:
        reduction = Reduction(reduce_op, prescale_factor, postscale_factor, wire)
        return _allreduce(tensor, name, reduction, process_set)
    compressed, context = compression.compress(tensor)
    reduction = Reduction(reduce_op, prescale_factor, postscale_factor)
    reduced = _allreduce(compressed, name, reduction, process_set)
    result: torch.Tensor = compression.decompress(reduced, context)
    return result


def allreduce_async_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Start an allreduce in place and return a handle for poll and synchronize.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduction = Reduction(resolve_op(op, average), prescale_factor, postscale_factor)
    return _submit.allreduce(tensor, tensor, name, reduction, process_set)


def allreduce_(
    tensor: torch.Tensor,
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Combine the tensors of all ranks in place, and return the tensor.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduce_op = resolve_op(op, average)
    if tensor.is_cpu and not is_compiling():
        _run(
            tensor,
            tensor,
            name,
            reduce_op,
            prescale_factor,
            postscale_factor,
            codes.NO_WIRE_DTYPE,
            process_set,
        )
        return tensor
    reduction = Reduction(reduce_op, prescale_factor, postscale_factor)
    if is_compiling():
        traced: torch.Tensor = compiled().allreduce_(tensor, name, reduction, process_set)
        return traced
    synchronize(_submit.allreduce(tensor, tensor, name, reduction, process_set))
    return tensor


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Start an allreduce of several tensors as one operation; one handle for all.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allreduce.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduction = Reduction(resolve_op(op, average), prescale_factor, postscale_factor)
    return _submit.grouped_allreduce(tensors, None, name, reduction, process_set)


def _grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    reduction: Reduction,
    process_set: ProcessSet,
) -> Sequence[torch.Tensor]:
    if is_compiling():
        traced: Sequence[torch.Tensor] = compiled().grouped_allreduce(tensors, name, reduction, process_set)
        return traced
    if not _autograd.transforms_active():
        check_group("allreduce", tensors)
    result: Sequence[torch.Tensor]
    if any(_autograd.is_wanted(tensor) for tensor in tensors):
        result = HorovodGroupedAllreduce.apply(reduction, process_set, name, *tensors)
    else:
        handle = _submit.grouped_allreduce(tensors, None, name, reduction, process_set)
        result = synchronize(handle)
    return result


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Return several tensors, each combined over all ranks, as one operation. Differentiable.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allreduce.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduce_op = resolve_op(op, average)
    wire = group_wire_dtype(compression, tensors, reduce_op)
    if wire is not None:
        reduction = Reduction(reduce_op, prescale_factor, postscale_factor, wire)
        return list(_grouped_allreduce(tensors, name, reduction, process_set))
    pairs = [compression.compress(tensor) for tensor in tensors]
    reduction = Reduction(reduce_op, prescale_factor, postscale_factor)
    reduced = _grouped_allreduce([pair[0] for pair in pairs], name, reduction, process_set)
    return [compression.decompress(tensor, pair[1]) for tensor, pair in zip(reduced, pairs, strict=True)]


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Start an allreduce of several tensors in place as one operation; one handle for all.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allreduce.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduction = Reduction(resolve_op(op, average), prescale_factor, postscale_factor)
    return _submit.grouped_allreduce(tensors, tensors, name, reduction, process_set)


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: bool | None = None,
    name: str | None = None,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> tuple[torch.Tensor, ...]:
    """Combine several tensors over all ranks in place as one operation, and return them.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allreduce.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduction = Reduction(resolve_op(op, average), prescale_factor, postscale_factor)
    handle = _submit.grouped_allreduce(tensors, tensors, name, reduction, process_set)
    result: tuple[torch.Tensor, ...] = synchronize(handle)
    return result


def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: str | None,
    op: int,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:
    """Start an allreduce of a sparse tensor; call what is returned to wait for the result.

    Indices and values are gathered. The result is not coalesced: equal indices of different ranks
    are added when it is used. Average divides by the size of the set; any other op is a sum.

    Arguments:
        tensor: a sparse COO tensor.
        name: what ranks match the operation by; without one they match by order.
        op: Average, or Sum.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    indices = tensor._indices().t().contiguous()  # noqa: SLF001 - also of uncoalesced tensors
    values = tensor._values().contiguous()  # noqa: SLF001
    indices_name = None if name is None else f"{name}.indices"
    values_name = None if name is None else f"{name}.values"
    indices_handle = _submit.allgather(indices, indices_name, process_set)
    values_handle = _submit.allgather(values, values_name, process_set)

    def result() -> torch.Tensor:
        gathered_values = synchronize(values_handle)
        gathered_indices = synchronize(indices_handle)
        if op == codes.AVERAGE:
            gathered_values = gathered_values / (process_set.size() or 1)
        return torch.sparse_coo_tensor(
            gathered_indices.t(), gathered_values, tensor.size(), check_invariants=False
        )

    return result
