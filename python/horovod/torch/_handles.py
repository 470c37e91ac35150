"""The handles of this front end."""

from __future__ import annotations

from typing import Any

import torch

from horovod._core.handles import HandleTable

from ._tensors import take

handles = HandleTable()


def poll(handle: int) -> bool:
    """Return whether an asynchronous operation is complete, so that synchronize does not block."""
    return handles.poll(handle)


def synchronize(handle: int) -> Any:
    """Wait for an asynchronous operation and return its output."""
    return handles.synchronize(handle)


# What turns a completed operation into its result: (native handle, what was kept with it).


def copy_back(native: int, kept: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Bring a result from the host to its tensor on a device."""
    del native
    target, host = kept
    with torch.no_grad():
        target.copy_(host)
    return target


def copy_back_all(native: int, kept: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[Any, ...]:
    """Bring the results of a group to their tensors."""
    return tuple(copy_back(native, pair) for pair in kept)


def take_one(native: int, kept: torch.Tensor) -> torch.Tensor:
    """Take over the output of an operation on the tensor that was kept."""
    return take(native, 0, kept)


def take_all(native: int, kept: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Take over the outputs of a group."""
    return tuple(take(native, i, tensor) for i, tensor in enumerate(kept))
