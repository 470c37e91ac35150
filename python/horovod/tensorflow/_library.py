"""The plug-in with the ops, as TensorFlow loads it.

It lies beside the core's library, which must be in the process first: the plug-in then uses that copy.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import tensorflow as tf

from horovod._core import _native

_PROBE = "horovod_allreduce"


def _load() -> Any:
    path = Path(_native.library_path()).with_name("libhorovod_tensorflow.so")
    if not path.exists():
        message = f"horovod.tensorflow: {path} is missing; install the package again"
        raise ImportError(message)
    problem = ""
    try:
        module = tf.load_op_library(str(path))
    except (tf.errors.OpError, RuntimeError) as error:
        module, problem = None, str(error)
    # Ops that were not registered are no error of load_op_library: the plug-in says why.
    if not hasattr(module, _PROBE):
        plugin = ctypes.CDLL(str(path))
        plugin.hvd_tensorflow_report.restype = ctypes.c_char_p
        report = plugin.hvd_tensorflow_report().decode()
        message = (
            f"horovod.tensorflow: the ops did not load into TensorFlow {tf.__version__}: "
            f"{report or problem or 'another copy of the plug-in has been loaded before'}"
        )
        raise ImportError(message)
    return module


def _add_gpu_kernels() -> None:
    """Where the user says that TensorFlow's GPUs come from a plug-in on CUDA's streams."""
    if os.environ.get("HOROVOD_TENSORFLOW_GPU_KERNELS", "0").lower() not in {"1", "true", "on", "yes"}:
        return
    if tf.test.is_built_with_gpu_support():
        message = (
            "HOROVOD_TENSORFLOW_GPU_KERNELS=1: this TensorFlow was built for GPUs, and does not tell "
            "plug-ins the streams of its own devices; expected a build for CPUs with a device plug-in"
        )
        raise ImportError(message)
    plugin = ctypes.CDLL(str(Path(_native.library_path()).with_name("libhorovod_tensorflow.so")))
    plugin.hvd_tensorflow_register_gpu.restype = ctypes.c_char_p
    problem = plugin.hvd_tensorflow_register_gpu().decode()
    if problem:
        message = f"HOROVOD_TENSORFLOW_GPU_KERNELS=1: {problem}"
        raise ImportError(message)


ops = _load()
_add_gpu_kernels()
