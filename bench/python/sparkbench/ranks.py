"""What is measured inside the ranks: the time until all are in the job, and steps of training."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_WARM_UP_STEPS: Final = 10
_START_TIME_FIELD: Final = 19  # of /proc/self/stat, counted after the name of the program


def time_of_init(front_end: str | None) -> tuple[float, float]:
    """When the process of this rank began and when hvd.init() had returned, in seconds of one clock.

    With a front end, its import counts too.
    """
    if front_end is None:
        from horovod._core.basics import HorovodBasics  # noqa: PLC0415 - part of what is timed

        HorovodBasics().init()
    else:
        import importlib  # noqa: PLC0415 - part of what is timed

        importlib.import_module(front_end).init()
    done = time.clock_gettime(time.CLOCK_BOOTTIME)
    fields = Path("/proc/self/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return int(fields[_START_TIME_FIELD]) / _TICKS_PER_SECOND, done


def seconds_per_step(steps: int) -> float:
    """Train the CNN of the PyTorch benchmark; one thread per rank."""
    import torch  # noqa: PLC0415 - the driver needs none
    from torchbench.problems import cnn  # noqa: PLC0415
    from torchbench.ways import Horovod  # noqa: PLC0415

    import horovod.torch as hvd  # noqa: PLC0415

    torch.set_num_threads(1)
    hvd.init()
    way = Horovod(cnn(hvd.rank()))
    for _ in range(_WARM_UP_STEPS):
        way.step()
    hvd.barrier()
    start = time.perf_counter()
    for _ in range(steps):
        way.step()
    return (time.perf_counter() - start) / steps
