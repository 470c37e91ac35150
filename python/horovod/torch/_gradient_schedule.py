"""When this process reduces gradients; see horovod/_core/schedule.py for the rule."""

from __future__ import annotations

import torch

from horovod._core.schedule import GradientSchedule
from horovod._core.scheduling import current_schedule


def gradient_schedule() -> GradientSchedule:
    """Return when gradients in host memory are reduced, and why.

    "step": in step() or synchronize(), by the calling thread. "background": during backward, by the
    background thread. HOROVOD_GRADIENT_SCHEDULE forces one of them.
    """
    return schedule_for(torch.device("cpu"))


def schedule_for(device: torch.device) -> GradientSchedule:
    """Return the schedule for gradients on this device; logged when it is new."""
    return current_schedule(torch.get_num_threads(), device.type)
