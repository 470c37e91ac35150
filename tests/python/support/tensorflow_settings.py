"""How tests use TensorFlow: quietly, on the CPU. Import this before it."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def use_one_thread() -> None:
    """Ranks times threads must not exceed the cores."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
