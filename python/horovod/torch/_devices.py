"""Where a tensor lies, as the core is told: a GPU and the stream that makes the tensor ready.

Tensors on CUDA devices are handed to the core as they are. Those of other devices are copied through
host memory by the callers.
"""

from __future__ import annotations

from typing import Any

import torch

HOST = -1


def is_direct(tensor: torch.Tensor) -> bool:
    """Whether the core can use the tensor's own memory: on the host, or on a GPU of CUDA."""
    return tensor.is_cpu or (tensor.is_cuda and torch.version.hip is None)


def device_of(tensor: torch.Tensor) -> int:
    """Return the number of the tensor's GPU; -1: host memory."""
    return tensor.get_device() if tensor.is_cuda else HOST


def current_stream(device: int) -> int:
    """Return the stream that this thread gives work of the GPU to; 0 for host memory."""
    if device < 0:
        return 0
    stream: int = torch.cuda.current_stream(device).cuda_stream
    return stream


def on_own_device(tensor: torch.Tensor) -> str | torch.device:
    """Return where a copy for the core has to lie."""
    return tensor.device if is_direct(tensor) else "cpu"


def order(native: int, result: Any, device: int) -> Any:
    """Let the current stream wait for a result that may be under way; returns the result."""
    # Imported late: what only asks where a tensor lies needs no core.
    from horovod._core import _native  # noqa: PLC0415

    _native.order(native, current_stream(device))
    return result
