"""The adapter, libhorovod_mxnet.so: pushes operations to MXNet's engine.

It lies beside the core's library, which is in the process first, so that both are one copy.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
from pathlib import Path

from horovod._core import _native
from horovod._core.leaving import before

from ._framework import mx


class Operation(ctypes.Structure):
    """hvd::mxnet::Operation of src/bindings/mxnet/operation.h."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("reduce_op", ctypes.c_int32),
        ("wire_dtype", ctypes.c_int32),
        ("process_set", ctypes.c_int32),
        ("root_rank", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("is_group", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("is_direct", ctypes.c_int32),
        ("unused", ctypes.c_int32),
        ("prescale", ctypes.c_double),
        ("postscale", ctypes.c_double),
    )


def _open() -> ctypes.CDLL:
    path = Path(_native.library_path()).with_name("libhorovod_mxnet.so")
    if not path.exists():
        message = f"horovod.mxnet: {path} is missing; install the package again"
        raise ImportError(message)
    library = ctypes.CDLL(str(path))
    library.hvd_mxnet_load.restype = ctypes.c_char_p
    library.hvd_mxnet_load.argtypes = (ctypes.c_void_p, ctypes.c_int) + 3 * (ctypes.c_void_p,)
    library.hvd_mxnet_push.restype = ctypes.c_char_p
    library.hvd_mxnet_push.argtypes = (
        ctypes.POINTER(Operation),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_char_p),
    )
    array, other = mx.nd.empty((2,), ctx=mx.cpu()), mx.nd.empty((2,), ctx=mx.cpu())
    view = array[1:2]
    is_naive = os.environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine"
    problem = library.hvd_mxnet_load(
        mx.base._LIB._handle,  # noqa: SLF001 - the library as Python has opened it
        int(is_naive),
        array.handle,
        view.handle,
        other.handle,
    )
    if problem is not None:
        message = f"horovod.mxnet: MXNet {mx.__version__} does not fit: {problem.decode()}"
        raise ImportError(message)
    library.hvd_mxnet_abandon.restype = None
    library.hvd_mxnet_abandon.argtypes = ()
    # Runs before that of MXNet, and after that of the core, which does nothing if the program failed.
    atexit.register(library.hvd_mxnet_abandon)
    return library


def _finish() -> None:
    """Wait until MXNet's engine has done what was pushed; whoever reads the results sees errors."""
    with contextlib.suppress(mx.base.MXNetError):
        mx.nd.waitall()


library = _open()
before(_finish)
push = library.hvd_mxnet_push
