"""When this process reduces gradients; see horovod/_core/schedule.py for the rule."""

from __future__ import annotations

import logging
import os

import torch

from horovod._core.basics import basics
from horovod._core.schedule import (
    GradientSchedule,
    Surroundings,
    decide,
    requested_mode,
    usable_cores,
)

_log = logging.getLogger("horovod")
_logged: set[GradientSchedule] = set()


def gradient_schedule() -> GradientSchedule:
    """Return when gradients in host memory are reduced, and why.

    "step": in step() or synchronize(), by the calling thread. "background": during backward, by the
    background thread. HOROVOD_GRADIENT_SCHEDULE forces one of them.
    """
    return schedule_for(torch.device("cpu"))


def schedule_for(device: torch.device) -> GradientSchedule:
    """Return the schedule for gradients on this device; logged when it is new."""
    ranks = basics.size()
    ranks_on_host = basics.local_size()
    around = Surroundings(
        ranks=ranks,
        ranks_on_host=ranks_on_host,
        hosts=max(basics.cross_size(), -(-ranks // max(1, ranks_on_host))),
        cores=usable_cores(),
        compute_threads=torch.get_num_threads(),
        device=device.type,
    )
    schedule = decide(around, requested_mode(os.environ))
    if schedule not in _logged:
        _logged.add(schedule)
        _log.info("gradients are reduced in mode '%s': %s", schedule.mode, schedule.reason)
    return schedule
