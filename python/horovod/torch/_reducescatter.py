"""Reducescatter in all its forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from horovod._core import codes
from horovod._core.process_sets import ProcessSet, global_process_set
from horovod._core.submit import Reduction

from . import _autograd, _submit
from ._autograd import HorovodReducescatter
from ._autograd_groups import HorovodGroupedReducescatter
from ._compiling import compiled, is_compiling
from ._handles import synchronize
from ._tensors import check_group, dtype_code
from .compression import Compression


def reducescatter_async(
    tensor: torch.Tensor,
    name: str | None = None,
    op: int = codes.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Start a reducescatter and return a handle for poll and synchronize.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks. Needs at least one
            dimension.
        name: what ranks match the operation by; without one they match by order.
        op: Average or Sum.
        process_set: the ranks that take part, all of which must call this.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduction = Reduction(op, prescale_factor, postscale_factor)
    return _submit.reducescatter(tensor, name, reduction, process_set)


def _reducescatter(
    tensor: torch.Tensor, name: str | None, reduction: Reduction, process_set: ProcessSet
) -> torch.Tensor:
    if is_compiling():
        traced: torch.Tensor = compiled().reducescatter(tensor, name, reduction, process_set)
        return traced
    if not _autograd.transforms_active():
        dtype_code(tensor)
    result: torch.Tensor
    if _autograd.is_wanted(tensor):
        result = HorovodReducescatter.apply(tensor, reduction, process_set, name)
    else:
        result = synchronize(_submit.reducescatter(tensor, name, reduction, process_set))
    return result


def reducescatter(
    tensor: torch.Tensor,
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = codes.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Return this rank's rows of the reduced tensor. Differentiable.

    Rank order; where the rows do not come out even, the first ranks have one more. Average or Sum.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks. Needs at least one
            dimension.
        name: what ranks match the operation by; without one they match by order.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average or Sum.
        process_set: the ranks that take part, all of which must call this.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    compressed, context = compression.compress(tensor)
    reduction = Reduction(op, prescale_factor, postscale_factor)
    reduced = _reducescatter(compressed, name, reduction, process_set)
    result: torch.Tensor = compression.decompress(reduced, context)
    return result


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    op: int = codes.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Start a reducescatter of several tensors as one operation; one handle for all.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of reducescatter.
        name: what ranks match the operation by; without one they match by order.
        op: Average or Sum.
        process_set: the ranks that take part, all of which must call this.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    reduction = Reduction(op, prescale_factor, postscale_factor)
    return _submit.grouped_reducescatter(tensors, name, reduction, process_set)


def _grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None,
    reduction: Reduction,
    process_set: ProcessSet,
) -> Sequence[torch.Tensor]:
    if not _autograd.transforms_active():
        check_group("reducescatter", tensors)
    result: Sequence[torch.Tensor]
    if any(_autograd.is_wanted(tensor) for tensor in tensors):
        result = HorovodGroupedReducescatter.apply(reduction, process_set, name, *tensors)
    else:
        result = synchronize(_submit.grouped_reducescatter(tensors, name, reduction, process_set))
    return result


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: str | None = None,
    compression: Any = Compression.none,
    op: int = codes.AVERAGE,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """Return this rank's rows of several reduced tensors, as one operation. Differentiable.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of reducescatter.
        name: what ranks match the operation by; without one they match by order.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average or Sum.
        process_set: the ranks that take part, all of which must call this.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.

    Raises:
        ValueError: a dtype or a value that is refused, a name that is still in flight, or a
            process set that this rank is not in.
        HorovodInternalError: ranks that do not fit together (shape, dtype, options), a lost
            rank, or no `init`.

    """
    pairs = [compression.compress(tensor) for tensor in tensors]
    reduction = Reduction(op, prescale_factor, postscale_factor)
    reduced = _grouped_reducescatter([pair[0] for pair in pairs], name, reduction, process_set)
    return [compression.decompress(tensor, pair[1]) for tensor, pair in zip(reduced, pairs, strict=True)]
