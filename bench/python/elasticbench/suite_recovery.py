"""From a kill to the next step of all survivors; the pause of the others when a worker is added.

The others meet a newcomer when it calls hvd.init(); what its program does from there to its first step is its
own start-up, and taken off.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from elasticbench.watching import WatchedJob

NANOSECONDS = 1e9
TORCHRUN_SECONDS = 60.0


def horovodrun() -> str:
    """Return the launcher of this environment."""
    return str(Path(sys.executable).with_name("horovodrun"))


def _members(job: WatchedJob, epoch: int) -> dict[int, list[int]]:
    return {numbers[2]: numbers for numbers in job.lines("world") if numbers[0] == epoch}


def measure(size: int, rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each recovery, and of each pause for a newcomer."""
    recoveries, pauses = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launch = [horovodrun(), "-np", str(size), "--min-np", "1", "--blacklist-cooldown-range", "1", "1"]
        job = WatchedJob(
            [*launch, sys.executable, "-m", "elasticbench.training", str(folder / "stop")], folder
        )
        try:
            epoch = 1
            for _ in range(rounds):
                world = wait_for_world(job, epoch, size)
                time.sleep(0.3)  # in the middle of steps
                victim = world[size - 1]
                killed_at = time.monotonic_ns()
                os.kill(victim[3], signal.SIGKILL)
                after = wait_for_world(job, epoch + 1, size - 1)
                recoveries.append((max(one[5] for one in after.values()) - killed_at) / NANOSECONDS)
                grown = wait_for_world(job, epoch + 2, size)
                building = max(one[6] for one in grown.values())
                longest = max(one[5] - one[4] for one in grown.values() if one[4])
                pauses.append((longest - building) / NANOSECONDS)
                epoch += 2
            (folder / "stop").touch()
            if job.finish() != 0:
                raise RuntimeError(job.tail())
        finally:
            job.close()
    return recoveries, pauses


def wait_for_world(job: WatchedJob, epoch: int, size: int) -> dict[int, list[int]]:
    """Return what each rank said at its first step in that world."""
    job.wait_for(lambda: len(_members(job, epoch)) == size)
    return _members(job, epoch)


def _whole_life(job: WatchedJob, after: int, size: int) -> list[list[int]] | None:
    """The steps of the first life after that one in which all workers have taken one."""
    lives: dict[int, list[list[int]]] = {}
    for numbers in job.lines("step"):
        lives.setdefault(numbers[0], []).append(numbers)
    whole = [life for life, steps in lives.items() if life > after and len(steps) == size]
    return lives[min(whole)] if whole else None


def measure_torchrun(size: int, rounds: int) -> list[float]:
    """Return the seconds from a kill to the first step of all workers under torchrun, a job for each.

    It may need several lives for one kill, since a worker that fails while the others start is a failure
    again, and now and then it does not come back at all: then what it was given counts.
    """
    return [_recovery_of_torchrun(size) for _ in range(rounds)]


def _recovery_of_torchrun(size: int) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
        launch += ["--max-restarts=10", "--tee=0", "-m", "elasticbench.restarted"]
        job = WatchedJob([*launch, str(folder / "stop"), str(folder / "checkpoint")], folder)
        try:
            job.wait_for(lambda: _whole_life(job, -1, size) is not None)
            steps = _whole_life(job, -1, size) or []
            time.sleep(0.3)
            killed_at = time.monotonic_ns()
            os.kill(steps[-1][2], signal.SIGKILL)
            try:
                job.wait_for(lambda: _whole_life(job, steps[0][0], size) is not None, TORCHRUN_SECONDS)
            except RuntimeError:
                return TORCHRUN_SECONDS
            after = _whole_life(job, steps[0][0], size) or []
            return (max(numbers[3] for numbers in after) - killed_at) / NANOSECONDS
        finally:
            job.close()
