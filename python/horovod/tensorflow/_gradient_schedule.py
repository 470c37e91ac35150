"""When this process reduces gradients; see horovod/_core/schedule.py for the rule."""

from __future__ import annotations

import tensorflow as tf

from horovod._core.schedule import GradientSchedule, usable_cores
from horovod._core.scheduling import current_schedule


def gradient_schedule() -> GradientSchedule:
    """Return when gradients are reduced, and why.

    "step": when all of them are there. "background": each while the others are still computed.
    HOROVOD_GRADIENT_SCHEDULE forces one of them. A graph keeps the schedule it was made under.
    """
    threads = tf.config.threading.get_intra_op_parallelism_threads() or usable_cores()
    # Physical devices: asking for logical ones would start TensorFlow, with all that it takes.
    device = "gpu" if tf.config.list_physical_devices("GPU") else "cpu"
    return current_schedule(threads, device)
