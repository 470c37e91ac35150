"""The handles of this front end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from horovod._core.handles import HandleTable

from ._devices import device_of, order
from ._tensors import take

handles = HandleTable()

_shutdown_hooks: list[Callable[[], None]] = []


def at_shutdown(hook: Callable[[], None]) -> None:
    """Call this after each shutdown: what refers to operations of the core must forget them."""
    _shutdown_hooks.append(hook)


def run_shutdown_hooks() -> None:
    """Tell those who asked."""
    for hook in _shutdown_hooks:
        hook()


def poll(handle: int) -> bool:
    """Return whether an asynchronous operation is complete, so that synchronize does not block.

    Arguments:
        handle: what an asynchronous operation returned.

    Raises:
        ValueError: the handle is not known, or was waited for.

    """
    return handles.poll(handle)


def synchronize(handle: int) -> Any:
    """Wait for an asynchronous operation and return its output.

    Arguments:
        handle: what an asynchronous operation returned.

    Raises:
        ValueError: the operation was refused.
        HorovodInternalError: ranks that do not fit together, a lost rank, or a shut down.

    """
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


def order_one(native: int, kept: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Let the current stream wait for the result on a device; the input may go now."""
    output, _ = kept
    order(native, output, device_of(output))
    return output


def order_all(
    native: int, kept: tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]
) -> tuple[torch.Tensor, ...]:
    """Let the current stream wait for the results of a group."""
    outputs, _ = kept
    order(native, outputs, device_of(outputs[0]))
    return outputs


def take_one(native: int, kept: torch.Tensor) -> torch.Tensor:
    """Take over the output of an operation on the tensor that was kept."""
    return order(native, take(native, 0, kept), device_of(kept))  # type: ignore[no-any-return]


def take_all(native: int, kept: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Take over the outputs of a group."""
    outputs = tuple(take(native, i, tensor) for i, tensor in enumerate(kept))
    order(native, None, device_of(kept[0]))
    return outputs
