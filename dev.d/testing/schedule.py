"""Runs a graph of steps: one starts when what it needs has succeeded and there is room for it.

Room: the cores of all tests that run at a time are at most those of the machine, and one build runs
beneath them at low priority, so that work that computes fills the time in which tests wait. What is
marked `is_alone` has the machine for itself. Of the steps that could start, the first of the list does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from step import LOGS, ROOT, Ended, Step

POLL_SECONDS = 0.1
# Between SIGTERM, at which launchers end their workers, and SIGKILL.
GRACE_SECONDS = 30
BUILD_NICENESS = 10


@dataclass(slots=True)
class Running:
    """A step with its processes, which are a group of their own."""

    step: Step
    process: subprocess.Popen[bytes]
    began_at: float
    stopped_at: float | None = None  # when its time was over

    def poll(self) -> Ended | None:
        """How it ended; None: it runs."""
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        now = time.monotonic()
        if pid == 0:
            self._keep_limit(now)
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)  # it is not waited for again
        return Ended(
            code=self.process.returncode,
            timed_out=self.stopped_at is not None,
            seconds=now - self.began_at,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
        )

    def signal(self, number: int) -> None:
        """Send a signal to all its processes."""
        with contextlib.suppress(ProcessLookupError):  # they ended just now
            os.killpg(self.process.pid, number)

    def _keep_limit(self, now: float) -> None:
        if self.stopped_at is None:
            if now > self.began_at + self.step.limit_seconds:
                self.stopped_at = now
                self.signal(signal.SIGTERM)
        elif now > self.stopped_at + GRACE_SECONDS:
            self.signal(signal.SIGKILL)


def fits(step: Step, running: Iterable[Step], cores: int) -> bool:
    """Whether there is room for a step beside those that run."""
    others = list(running)
    if step.is_alone or not others:
        return not others
    if any(other.is_alone for other in others):
        return False
    if step.is_build:
        return not any(other.is_build for other in others)
    busy = sum(other.cores for other in others if not other.is_build)
    return busy == 0 or busy + step.cores <= cores


def start(step: Step) -> Running:
    """Start the command of a step; its output goes to its log."""

    def prepare() -> None:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where a shell runs us in the background
        if step.is_build:
            os.nice(BUILD_NICENESS)

    LOGS.mkdir(parents=True, exist_ok=True)
    with step.log.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - what the plan says
            step.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, **step.environment},
            preexec_fn=prepare,  # noqa: PLW1509 - there are no threads
        )
    return Running(step, process, time.monotonic())


def run(steps: list[Step], cores: int, on_end: Callable[[Step, Ended], bool]) -> list[Step]:
    """Run all steps that can be; `on_end` says whether one succeeded. Returns those that could not start."""
    waiting, running = list(steps), list[Running]()
    succeeded = set[str]()
    try:
        while waiting or running:
            for step in list(waiting):
                is_ready = succeeded.issuperset(step.needs)
                if is_ready and fits(step, (one.step for one in running), cores):
                    waiting.remove(step)
                    running.append(start(step))
            if not running:
                break  # what is left needs something that failed
            time.sleep(POLL_SECONDS)
            for one in list(running):
                if (ended := one.poll()) is not None:
                    running.remove(one)
                    if on_end(one.step, ended) or one.step.may_fail:
                        succeeded.add(one.step.name)
    finally:
        stop(running)
    return waiting


def stop(running: list[Running]) -> None:
    """End what still runs when the run itself is ended."""
    for one in running:
        one.step = replace(one.step, limit_seconds=0)
    while running:
        running[:] = [one for one in running if one.poll() is None]
        time.sleep(POLL_SECONDS)
