"""Arrays of MXNet: which ones an operation takes, and new ones like them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from horovod._core.codes import FLOAT16, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8
from horovod._core.submit import TensorView

from ._framework import mx

DTYPES: Final[dict[Any, int]] = {
    np.dtype(np.float16): FLOAT16,
    np.dtype(np.float32): FLOAT32,
    np.dtype(np.float64): FLOAT64,
    np.dtype(np.uint8): UINT8,
    np.dtype(np.int8): INT8,
    np.dtype(np.int32): INT32,
    np.dtype(np.int64): INT64,
}

_ON_HOST: Final = frozenset({"cpu", "cpu_pinned", "cpu_shared"})


def check_array(operation: str, tensor: Any) -> None:
    """Refuse what is not a dense array, before anything is pushed."""
    if not isinstance(tensor, mx.nd.NDArray):
        message = f"{operation}: expected an mx.nd.NDArray, got {type(tensor).__name__}"
        raise AssertionError(message)  # noqa: TRY004 - type of the public API
    if tensor.stype != "default":
        message = (
            f"{operation}: expected a dense array, got one of storage type '{tensor.stype}'; "
            "use tensor.tostype('default')"
        )
        raise ValueError(message)


def check_arrays(operation: str, tensors: Sequence[Any]) -> None:
    """Refuse a group in which anything is not a dense array."""
    for tensor in tensors:
        check_array(operation, tensor)


def is_on_host(tensor: Any) -> bool:
    """Return whether the core can reach the memory."""
    return tensor.context.device_type in _ON_HOST


def may_be_blocked(tensor: Any) -> bool:
    """Return whether what is pending may leave the array in a layout of oneDNN.

    Nobody can tell before it has run; an array of one dimension never is in one.
    """
    return len(tensor.shape) > 1


def _host_context(tensor: Any) -> Any:
    """Return where host memory for this array is: with the array, as cpu(1), if that is on the host."""
    return tensor.context if is_on_host(tensor) else mx.cpu()


def empty_like(tensor: Any) -> Any:
    """Return an array of the same kind, in host memory."""
    maker = mx.np if isinstance(tensor, mx.np.ndarray) else mx.nd
    return maker.empty(tensor.shape, dtype=tensor.dtype, ctx=_host_context(tensor))


def copy_to_host(tensor: Any) -> Any:
    """Return a copy in plain layout; later operations wait for it. It is no part of a recorded graph."""
    with mx.autograd.pause():
        return tensor.copyto(_host_context(tensor))


def settle(tensor: Any) -> int:
    """Wait for an array in host memory, turn it into plain layout, and return where it lies.

    What its computation raised is raised here.
    """
    tensor.wait_to_read()
    address = ctypes.c_void_p()
    mx.base.check_call(mx.base._LIB.MXNDArrayGetData(tensor.handle, ctypes.byref(address)))  # noqa: SLF001
    return address.value or 0


def view_now(operation: str, tensor: Any) -> TensorView:
    """Wait for an array, and return what the core needs to know about it."""
    dtype = DTYPES.get(np.dtype(tensor.dtype))
    if dtype is None:
        names = ", ".join(map(str, DTYPES))
        message = f"{operation}: dtype {np.dtype(tensor.dtype)} is not supported, expected one of {names}"
        raise ValueError(message)
    host = tensor if is_on_host(tensor) else copy_to_host(tensor)
    return TensorView(settle(host), dtype, host.shape, host)


def from_core(capsule: object, like: Any) -> Any:
    """Make an array of an output that the core has allocated, in the context of another."""
    made = mx.nd.from_dlpack(capsule)
    if isinstance(like, mx.np.ndarray):
        made = made.as_np_ndarray()
    return made.as_in_context(like.context)  # itself, if it is there already
