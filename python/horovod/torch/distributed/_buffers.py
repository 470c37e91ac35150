"""Tensors as the core sees them: contiguous memory of the host or a GPU, a known type, a count."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch

from horovod._core import _native
from horovod.torch._devices import is_direct, on_own_device
from horovod.torch._dlpack import from_dlpack
from horovod.torch._tensors import DTYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

_BYTE = DTYPES[torch.uint8]


@cache
def _something_on(device: torch.device) -> torch.Tensor:
    """An address for tensors without elements, whose own may be null."""
    return torch.zeros(1, device=device)


def address(tensor: torch.Tensor) -> int:
    """Where the tensor lies; never 0, which would ask the core to allocate."""
    return tensor.data_ptr() or _something_on(tensor.device).data_ptr()


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the core can use the tensor's own memory, on the host or on a GPU."""
    if not is_direct(tensor) or not tensor.is_contiguous() or tensor.is_neg():
        return False
    return not (tensor.is_complex() and tensor.is_conj())


def plain_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Memory that the core can use with the tensor's values, on the same device; itself if it is that.

    A tensor on a device that the core does not know is copied to the host.
    """
    if is_plain(tensor):
        return tensor
    return tensor.detach().to(on_own_device(tensor)).resolve_conj().resolve_neg().contiguous()


def plain_space(tensor: torch.Tensor) -> torch.Tensor:
    """Memory that the core can use for a result of the tensor's shape; itself if it is that."""
    if is_plain(tensor):
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=on_own_device(tensor))


def check_one_device(operation: str, tensors: Iterable[torch.Tensor]) -> None:
    """Raise unless the tensors of an operation are on one device."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        names = ", ".join(sorted(map(str, devices)))
        message = f"{operation}: expected all tensors on one device, got {names}"
        raise ValueError(message)


def give_back(tensor: torch.Tensor, plain: torch.Tensor) -> None:
    """Puts a result into the tensor that it is for, if that is another place."""
    if plain is not tensor:
        tensor.detach().copy_(plain)


def moved(tensor: torch.Tensor) -> tuple[int, int]:
    """(type, elements) for operations that only move data: unknown types travel as bytes."""
    code = DTYPES.get(tensor.dtype)
    if code is None:
        return _BYTE, tensor.numel() * tensor.element_size()
    return code, tensor.numel()


def elements_per_item(tensor: torch.Tensor) -> int:
    """How many elements the core sees for one of the tensor's."""
    return 1 if tensor.dtype in DTYPES else tensor.element_size()


def take_output(handle: int, dtype: torch.dtype) -> torch.Tensor:
    """The flat output that the core allocated, as a tensor that owns it."""
    output = from_dlpack(_native.take_output(handle, 0)).reshape(-1)
    return output if output.dtype == dtype else output.view(dtype)


def is_one_block(tensors: list[torch.Tensor]) -> bool:
    """Whether the tensors are plain and lie one after the other without gaps."""
    expected = tensors[0].data_ptr()
    storage = tensors[0].untyped_storage().data_ptr()
    for tensor in tensors:
        if (
            tensor.data_ptr() != expected
            or not is_plain(tensor)
            or tensor.untyped_storage().data_ptr() != storage
        ):
            return False
        expected += tensor.numel() * tensor.element_size()
    return True
