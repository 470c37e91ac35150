"""Memory that operations of a program read and write, with guards around it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.utils.dlpack import from_dlpack

from horovod._core import _native
from horovod.torch._tensors import DTYPES

_GUARD_BYTE = 0xA5


@dataclass(frozen=True)
class Buffer:
    """A tensor and the memory around it, which nobody may write."""

    tensor: torch.Tensor
    whole: torch.Tensor | None
    """None: in shared memory."""
    pad: int

    def is_intact(self) -> bool:
        """Whether the memory before and behind the tensor is as it was."""
        if self.whole is None:
            return True
        width = self.tensor.element_size() * self.pad
        count = self.tensor.element_size() * self.tensor.numel()
        outside = torch.cat((self.whole[:width], self.whole[width + count :]))
        return bool((outside == _GUARD_BYTE).all())


def private_buffer(values: torch.Tensor, pad: int) -> Buffer:
    """The values in ordinary memory, `pad` elements behind a boundary."""
    width = values.element_size()
    count = values.numel()
    whole = torch.full(((count + 2 * pad) * width,), _GUARD_BYTE, dtype=torch.uint8)
    tensor = whole[pad * width : (pad + count) * width].view(values.dtype).reshape(values.shape)
    tensor.copy_(values)
    return Buffer(tensor, whole, pad)


def shared_buffer(values: torch.Tensor) -> Buffer:
    """The values in memory that the ranks share; gone after shutdown."""
    tensor = from_dlpack(_native.buffer_alloc(tuple(values.shape), DTYPES[values.dtype]))
    if tensor.dtype != values.dtype:
        tensor = tensor.view(values.dtype)
    tensor.copy_(values)
    return Buffer(tensor, None, 0)


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether dtype, shape and every bit are equal: NaN equals itself here."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    return torch.equal(_bytes(left), _bytes(right))


def describe_difference(expected: torch.Tensor, actual: torch.Tensor) -> str:
    """Where two tensors differ, in one line."""
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return (
            f"expected {expected.dtype} of shape {tuple(expected.shape)}, "
            f"got {actual.dtype} of shape {tuple(actual.shape)}"
        )
    width = expected.element_size()
    differs = (_bytes(expected) != _bytes(actual)).reshape(-1, width).any(dim=1)
    places = differs.nonzero().flatten().tolist()
    first = places[0]
    return (
        f"{len(places)} of {expected.numel()} elements differ, first at {first}: "
        f"expected {expected.flatten()[first : first + 4].tolist()}, "
        f"got {actual.flatten()[first : first + 4].tolist()}"
    )


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)
