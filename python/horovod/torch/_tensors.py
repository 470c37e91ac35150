"""Conversion between torch tensors and what the core takes: an address, a dtype code, a shape.

Tensors in host memory and on CUDA devices are handed over as they are. A tensor on another kind of
device is copied to the host and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from horovod._core import _native, codes
from horovod._core.errors import HorovodInternalError
from horovod._core.submit import TensorView

from ._devices import HOST, current_stream, device_of, is_direct
from ._dlpack import from_dlpack

DTYPES: dict[torch.dtype, int] = {
    torch.uint8: codes.UINT8,
    torch.int8: codes.INT8,
    torch.int16: codes.INT16,
    torch.int32: codes.INT32,
    torch.int64: codes.INT64,
    torch.float16: codes.FLOAT16,
    torch.float32: codes.FLOAT32,
    torch.float64: codes.FLOAT64,
    torch.bool: codes.BOOL,
    torch.bfloat16: codes.BFLOAT16,
}
if hasattr(torch, "uint16"):
    DTYPES[torch.uint16] = codes.UINT16


def refuse(tensor: Any) -> ValueError:
    """Make the error for a tensor that dtype_code does not take."""
    if not isinstance(tensor, torch.Tensor):
        return ValueError(f"expected a torch.Tensor, got {type(tensor).__name__}")
    if tensor.layout is not torch.strided:
        return ValueError(
            f"tensor layout {tensor.layout} is not supported, expected a dense tensor; "
            "see sparse_allreduce_async"
        )
    if tensor.dtype not in DTYPES:
        return ValueError(f"tensor type {tensor.type()} ({tensor.dtype}) is not supported")
    return ValueError(
        f"tensor is required to be contiguous, got shape {tuple(tensor.shape)} with strides "
        f"{tensor.stride()}; use .contiguous()"
    )


def dtype_code(tensor: torch.Tensor) -> int:
    """Return the dtype of a tensor that the core can work on as it lies in memory."""
    try:
        code = DTYPES.get(tensor.dtype)
        if code is not None and tensor.is_contiguous():
            return code
    except (AttributeError, RuntimeError):
        raise refuse(tensor) from None
    raise refuse(tensor)


def view_of(tensor: torch.Tensor, output: object = None) -> TensorView:
    """Describe a tensor that the core can use; it and the output stay alive until completion."""
    device = device_of(tensor)
    if device == HOST:
        return TensorView(tensor.data_ptr(), DTYPES[tensor.dtype], tensor.shape, (tensor, output))
    return TensorView(
        tensor.data_ptr(),
        DTYPES[tensor.dtype],
        tensor.shape,
        (tensor, output),
        device,
        current_stream(device),
    )


def usable(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor itself, or a copy in host memory where the core cannot use it."""
    return tensor if is_direct(tensor) else tensor.detach().to("cpu")


def check_same_device(operation: str, tensors: Sequence[torch.Tensor]) -> None:
    """Raise unless a group is on one device."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) > 1:
        names = ", ".join(sorted(str(device) for device in devices))
        message = f"grouped_{operation}: all tensors must be on the same device, got {names}"
        raise HorovodInternalError(message)


def check_group(operation: str, tensors: Sequence[torch.Tensor]) -> None:
    """Raise for a group that cannot be submitted."""
    for tensor in tensors:
        dtype_code(tensor)
    check_same_device(operation, tensors)


def take(native: int, index: int, like: torch.Tensor) -> torch.Tensor:
    """Take over an output that the core has allocated; dtype and device are those of `like`."""
    output = from_dlpack(_native.take_output(native, index))
    if output.dtype != like.dtype:
        # The same bytes: not every release of torch reads every dtype from DLPack.
        output = output.view(like.dtype)
    return output if output.device == like.device else output.to(like.device)
