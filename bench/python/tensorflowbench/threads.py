"""How many threads TensorFlow computes with."""

from __future__ import annotations

import tensorflow as tf


def one_compute_thread() -> None:
    """Let ranks times threads not exceed the cores; before anything else is asked of TensorFlow."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
