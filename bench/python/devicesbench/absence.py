"""A process on a machine without a driver: what the device code costs it."""

from __future__ import annotations

import time
from pathlib import Path

from benchlib.cases import make_case, taken
from benchlib.contest import Round
from benchlib.readings import CaseReadings

from horovod._core import _native
from horovod._core.basics import basics


def measure_absence() -> list[CaseReadings]:
    """Init loads nothing, which is checked; the first question for GPUs is what it could cost at most."""
    basics.init()
    if "libcuda" in Path("/proc/self/maps").read_text(encoding="utf-8"):
        message = "init has loaded a driver"
        raise RuntimeError(message)
    start = time.perf_counter()
    count = _native.device_count()
    seconds = time.perf_counter() - start
    if count:
        message = f"expected a machine without GPUs, got {count}"
        raise RuntimeError(message)
    rounds = [Round({"asking": seconds}, 0.0, 0.0, 0.0)]
    return [
        make_case(
            "no driver: asking for GPUs", "us", _native.size(), rounds, [taken("ours", "asking", "horovod")]
        )
    ]
