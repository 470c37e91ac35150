"""Random schedules of real elastic jobs: each ends, counts every sample once, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from elastic_schedules import LEAST, MOST, Schedule, make_schedule, run_schedule
from hosts import why_not
from job import Ended

END_SECONDS = 20  # for what outlives the launcher by a moment
LOST_ALL = re.compile(
    "no worker that has the state of the training is left|"
    "all workers that had the state of the training were asked to leave"
)


def test_schedules_hold_every_fault_in_every_place_with_every_number_of_ranks() -> None:
    schedules = [make_schedule(seed, has_hosts=True) for seed in range(1, 201)]

    sizes = {(one.where, one.size) for one in schedules}
    kinds = {(one.where, re.split("[@ ]", event)[0]) for one in schedules for event in one.events}
    assert sizes == {(where, size) for where in ("one", "ssh", "join") for size in range(LEAST, MOST + 1)}
    for where in ("one", "ssh", "join"):
        for event in ("kill", "stop", "leave", "in-broadcast", "in-commit", "in-reset"):
            assert (where, event) in kinds
    assert {("ssh", "ask=cut"), ("join", "ask=cut"), ("join", "ask=add"), ("join", "ask=remove")} <= kinds
    assert make_schedule(7, has_hosts=True) == make_schedule(7, has_hosts=True)


@pytest.mark.soak
def test_random_schedules_end_well_and_leave_nothing_behind(tmp_path: Path) -> None:
    # HVD_ELASTIC_SCHEDULES: how many; HVD_ELASTIC_SEED: the first one, for a repetition.
    count = int(os.environ.get("HVD_ELASTIC_SCHEDULES", "1000"))
    first = int(os.environ.get("HVD_ELASTIC_SEED", "1"))
    has_hosts = why_not() is None
    for seed in range(first, first + count):
        schedule = make_schedule(seed, has_hosts=has_hosts)
        folder = tmp_path / str(seed)
        folder.mkdir()
        before = time.monotonic()
        try:
            job, *guests = run_schedule(folder, schedule)
            assert_ended_well(job)
            assert_told_the_end(schedule, job, guests)
            assert_nothing_is_left(folder)
        except BaseException as error:
            message = f"HVD_ELASTIC_SEED={seed} HVD_ELASTIC_SCHEDULES=1: {schedule}: {error}"
            raise AssertionError(message) from error
        ending = "lost all" if LOST_ALL.search(job.output) else "ended"
        print(schedule, ending, f"{time.monotonic() - before:.1f} s", flush=True)


def assert_ended_well(job: Ended) -> None:
    """All workers that had the state may die; that is said."""
    if LOST_ALL.search(job.output):
        assert job.code != 0, job.output
        return
    assert job.code == 0, job.output
    steps = re.findall(r"done: rank \d+ of \d+ step (\d+)", job.output)
    assert steps, job.output
    assert len(set(steps)) == 1, job.output


def assert_told_the_end(schedule: Schedule, job: Ended, guests: list[Ended]) -> None:
    """Whoever joined ends as the job does, or left before; behind a cut link it may lose the launcher.

    One that is added when the job is about to end may come too late.
    """
    for guest in guests:
        is_late = "nobody launches a job" in guest.output
        assert guest.code in (0, job.code) or (guest.code == 125 and (schedule.has_cut or is_late)), (
            guest.output + job.output
        )


def assert_nothing_is_left(folder: Path) -> None:
    for listing in folder.glob("shm.*"):
        assert listing.read_text() == "", listing.read_text()
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(folder) in _text(path)]
        if not left:
            return
    pytest.fail(f"processes are left: {left}")


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""
