"""When this process reduces gradients, from what surrounds it; schedule.py has the rule."""

from __future__ import annotations

import logging
import os

from .basics import basics
from .schedule import GradientSchedule, Surroundings, decide, requested_mode, usable_cores

_log = logging.getLogger("horovod")
_logged: set[GradientSchedule] = set()


def current_schedule(compute_threads: int, device: str) -> GradientSchedule:
    """Return the schedule for gradients on this kind of device; logged when it is new."""
    ranks = basics.size()
    ranks_on_host = basics.local_size()
    around = Surroundings(
        ranks=ranks,
        ranks_on_host=ranks_on_host,
        hosts=max(basics.cross_size(), -(-ranks // max(1, ranks_on_host))),
        cores=usable_cores(),
        compute_threads=compute_threads,
        device=device,
    )
    schedule = decide(around, requested_mode(os.environ))
    if schedule not in _logged:
        _logged.add(schedule)
        _log.info("gradients are reduced in mode '%s': %s", schedule.mode, schedule.reason)
    return schedule
