"""From a kill to the next step of all survivors; the pause of the others when a worker is added."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from elasticbench.watching import WatchedJob

NANOSECONDS = 1e9


def _horovodrun() -> str:
    return str(Path(sys.executable).with_name("horovodrun"))


def _members(job: WatchedJob, epoch: int) -> dict[int, list[int]]:
    return {numbers[2]: numbers for numbers in job.lines("world") if numbers[0] == epoch}


def measure(size: int, rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each recovery, and of each pause for a newcomer."""
    recoveries, pauses = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launch = [_horovodrun(), "-np", str(size), "--min-np", "1", "--blacklist-cooldown-range", "1", "1"]
        job = WatchedJob(
            [*launch, sys.executable, "-m", "elasticbench.training", str(folder / "stop")], folder
        )
        try:
            epoch = 1
            for _ in range(rounds):
                world = _wait_for_world(job, epoch, size)
                time.sleep(0.3)  # in the middle of steps
                victim = world[size - 1]
                killed_at = time.monotonic_ns()
                os.kill(victim[3], signal.SIGKILL)
                after = _wait_for_world(job, epoch + 1, size - 1)
                recoveries.append((max(one[5] for one in after.values()) - killed_at) / NANOSECONDS)
                grown = _wait_for_world(job, epoch + 2, size)
                pauses.append(max((one[5] - one[4]) / NANOSECONDS for one in grown.values() if one[4]))
                epoch += 2
            (folder / "stop").touch()
            if job.finish() != 0:
                raise RuntimeError(job.tail())
        finally:
            job.close()
    return recoveries, pauses


def _wait_for_world(job: WatchedJob, epoch: int, size: int) -> dict[int, list[int]]:
    job.wait_for(lambda: len(_members(job, epoch)) == size)
    return _members(job, epoch)


def measure_torchrun(size: int, rounds: int) -> list[float]:
    """Return the seconds from a kill to the first step of all workers under torchrun."""
    recoveries = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
        launch += [f"--max-restarts={rounds}", "--tee=0", "-m", "elasticbench.restarted"]
        job = WatchedJob([*launch, str(folder / "stop"), str(folder / "checkpoint")], folder)
        try:
            for number in range(1, rounds + 1):
                job.wait_for(lambda count=number * size: len(job.lines("step")) == count)
                time.sleep(0.3)
                killed_at = time.monotonic_ns()
                os.kill(job.lines("step")[-1][1], signal.SIGKILL)
                job.wait_for(lambda count=(number + 1) * size: len(job.lines("step")) == count)
                last = max(numbers[2] for numbers in job.lines("step")[-size:])
                recoveries.append((last - killed_at) / NANOSECONDS)
            (folder / "stop").touch()
            job.finish()
        finally:
            job.close()
    return recoveries
