"""When gradients are reduced: inside step(), or by the background thread while backward runs.

The choice is a pure function of what surrounds the process and says its reason. Names, matching and
errors do not depend on it: hooks submit every gradient as soon as it is complete either way.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["step", "background"]

SCHEDULE_VARIABLE: Final = "HOROVOD_GRADIENT_SCHEDULE"
_CHOICES: Final = ("auto", "step", "background")

# hvd_progress of hvd.h.
_PROGRESS: Final[dict[Mode, int]] = {"step": 2, "background": 3}


@dataclass(frozen=True, slots=True)
class GradientSchedule:
    """When gradients are reduced, and why."""

    mode: Mode
    reason: str

    @property
    def progress(self) -> int:
        """The hvd_progress that gradients are submitted with."""
        return _PROGRESS[self.mode]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the choice depends on."""

    ranks: int
    ranks_on_host: int
    hosts: int
    cores: int
    compute_threads: int
    device: str = "cpu"


def requested_mode(environment: Mapping[str, str]) -> Mode | None:
    """What the user forces; None: free to choose."""
    text = environment.get(SCHEDULE_VARIABLE, "").strip().lower() or "auto"
    if text not in _CHOICES:
        msg = f"{SCHEDULE_VARIABLE}: expected one of {', '.join(_CHOICES)}, got '{text}'"
        raise ValueError(msg)
    return None if text == "auto" else cast("Mode", text)


def decide(around: Surroundings, forced: Mode | None = None) -> GradientSchedule:
    """Reduce in step() unless something waits instead of computing.

    Hiding a reduction behind backward pays where it waits for a wire or a device, or where a core
    is idle. With every core computing it is memory traffic of the same cores, and doing it in
    step(), on the calling thread, saves the hand-over.
    """
    if forced is not None:
        return GradientSchedule(forced, f"{SCHEDULE_VARIABLE}={forced}")
    if around.ranks <= 1:
        return GradientSchedule("step", "one rank has nobody to exchange gradients with")
    if around.device != "cpu":
        return GradientSchedule("background", f"gradients on {around.device} wait for the device")
    if around.hosts > 1:
        return GradientSchedule("background", f"gradients cross the network between {around.hosts} hosts")
    busy = around.ranks_on_host * max(1, around.compute_threads)
    load = (
        f"{around.ranks_on_host} ranks x {max(1, around.compute_threads)} compute threads"
        f" on {around.cores} cores"
    )
    if busy >= around.cores:
        return GradientSchedule("step", f"{load}: no core is idle during backward")
    return GradientSchedule("background", f"{load}: idle cores reduce during backward")


def usable_cores() -> int:
    """Cores in the affinity mask of this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
