"""The plug-in with the ops, as TensorFlow loads it.

It lies beside the core's library, which must be in the process first: the plug-in then uses that copy.
"""

from __future__ import annotations

import ctypes
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


ops = _load()
