"""What the core is given of a gradient: a dense block of memory, and how the result comes back.

A dense gradient on the host or a GPU is reduced where it lies. Everything else (another kind of device,
a layout that other ranks may not have, a sparse gradient made dense, a compressor of the user) goes through a
buffer, and `finish` writes the result back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from horovod._core.codes import AVERAGE, NO_WIRE_DTYPE, SUM

from ._devices import is_direct, on_own_device
from .compression import wire_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Buffer(NamedTuple):
    """Memory that the core reads and overwrites."""

    tensor: Tensor
    wire_dtype: int
    finish: Callable[[], None] | None
    """Writes the result where the optimizer looks for it; None: it is there already."""


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill a block of memory without holes or overlap, in whatever order."""
    expected = 1
    for stride, length in sorted(zip(strides, shape, strict=True)):
        if length > 1:
            if stride != expected:
                return False
            expected *= length
    return True


def memory_shape(tensor: Tensor) -> Sequence[int]:
    """Lengths in the order of memory: ranks whose layouts differ are then told, not mixed up."""
    if tensor.is_contiguous():
        return tensor.shape
    strides = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda dim: -strides[dim])
    return [tensor.shape[dim] for dim in order]


def has_common_layout(gradient: Tensor, parameter: Tensor) -> bool:
    """Whether the gradient lies in memory as on every other rank.

    Autograd gives a gradient the strides of its parameter where those are dense, else it is
    contiguous; only a gradient that the user assigned can lie otherwise.
    """
    if gradient.layout is not torch.strided or gradient.shape != parameter.shape:
        return False
    strides = parameter.stride()
    if parameter.is_contiguous() or not is_dense(parameter.shape, strides):
        return gradient.is_contiguous()
    return gradient.stride() == strides


def common_layout_like(gradient: Tensor, parameter: Tensor) -> Tensor:
    """Memory for a copy of the gradient that the core can use, laid out as on every other rank."""
    dense = is_dense(parameter.shape, parameter.stride())
    layout = torch.preserve_format if dense else torch.contiguous_format
    return torch.empty_like(
        parameter, dtype=gradient.dtype, device=on_own_device(gradient), memory_format=layout
    )


def buffer_for(parameter: Tensor, gradient: Tensor, compression: Any, op: int) -> Buffer:
    """Where the core is to reduce this gradient; a sparse one is sent as a dense one."""
    if gradient.is_sparse:
        return _buffer_for_sparse(gradient, compression, op)
    if gradient.is_complex() and op in (AVERAGE, SUM):
        # Sums and averages of complex numbers are those of their parts.
        parts = torch.view_as_real(gradient.detach())
        return buffer_for(torch.view_as_real(parameter.detach()), parts, compression, op)
    wire = wire_dtype(compression, gradient.dtype, op)
    if wire is None or (wire != NO_WIRE_DTYPE and not gradient.is_cpu):
        # On a device the framework converts: the core sends what it is given.
        return _compressed(gradient, compression)
    if is_direct(gradient) and has_common_layout(gradient, parameter):
        return Buffer(gradient, wire, None)
    staged = common_layout_like(gradient, parameter)
    staged.copy_(gradient.detach())
    return Buffer(staged, wire, lambda: _write(gradient, staged))


def _buffer_for_sparse(gradient: Tensor, compression: Any, op: int) -> Buffer:
    dense = gradient.detach().to_dense().contiguous()
    inner = buffer_for(dense, dense, compression, op)

    def finish() -> None:
        if inner.finish is not None:
            inner.finish()
        write_sparse(gradient, dense.to_sparse(gradient.sparse_dim()))

    return Buffer(inner.tensor, inner.wire_dtype, finish)


def _compressed(gradient: Tensor, compression: Any) -> Buffer:
    compressed, context = compression.compress(gradient.detach())
    staged = compressed.detach().contiguous().to(on_own_device(compressed))
    if staged.data_ptr() == gradient.data_ptr():
        # Its compressor passed it through; the gradient may not be reduced in a foreign layout.
        staged = staged.clone()

    def finish() -> None:
        _write(gradient, compression.decompress(staged.to(compressed.device), context))

    return Buffer(staged, NO_WIRE_DTYPE, finish)


def _write(gradient: Tensor, result: Tensor) -> None:
    with torch.no_grad():
        gradient.copy_(result)


def write_sparse(gradient: Tensor, result: Tensor) -> None:
    """Give a sparse gradient the entries of another, in place."""
    with torch.no_grad():
        gradient.zero_().add_(result)


def zero_gradient(parameter: Tensor, *, sparse: bool) -> Tensor:
    """What a rank contributes for a parameter that its graph did not reach."""
    if not sparse:
        return torch.zeros_like(parameter, requires_grad=False)
    return torch.sparse_coo_tensor(
        torch.empty((1, 0), dtype=torch.int64, device=parameter.device),
        torch.empty((0, *parameter.shape[1:]), dtype=parameter.dtype, device=parameter.device),
        parameter.shape,
        check_invariants=False,
    )
