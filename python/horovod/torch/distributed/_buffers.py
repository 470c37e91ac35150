"""Tensors as the core sees them: contiguous host memory, a type it knows, a number of elements."""

from __future__ import annotations

import torch

from horovod._core import _native
from horovod.torch._devices import is_direct
from horovod.torch._dlpack import from_dlpack
from horovod.torch._tensors import DTYPES

_BYTE = DTYPES[torch.uint8]
_nothing = torch.zeros(1)  # an address for tensors without elements, whose own may be null


def address(tensor: torch.Tensor) -> int:
    """Where the tensor lies; never 0, which would ask the core to allocate."""
    return tensor.data_ptr() or _nothing.data_ptr()


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the core can use the tensor's own memory."""
    if not tensor.is_cpu or not tensor.is_contiguous() or tensor.is_neg():
        return False
    return not (tensor.is_complex() and tensor.is_conj())


def is_plain_anywhere(tensor: torch.Tensor) -> bool:
    """Whether the core can use the tensor's own memory, which may be that of a GPU."""
    if tensor.is_cpu:
        return is_plain(tensor)
    return is_direct(tensor) and tensor.is_contiguous() and not tensor.is_neg() and tensor.numel() > 0


def host_copy(tensor: torch.Tensor) -> torch.Tensor:
    """Contiguous host memory that holds the tensor's values; the tensor itself if it is that."""
    if is_plain(tensor):
        return tensor
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()


def host_space(tensor: torch.Tensor) -> torch.Tensor:
    """Contiguous host memory for a result of the tensor's shape; itself if it is that."""
    if is_plain(tensor):
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def give_back(tensor: torch.Tensor, host: torch.Tensor) -> None:
    """Puts what lies in the host memory into the tensor, if that is another place."""
    if host is not tensor:
        tensor.detach().copy_(host)


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
