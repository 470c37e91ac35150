"""Elastic jobs with PyTorch: every sample counts once, over deaths, leaves and joins at any place."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from pathlib import Path

import pytest
from job import Ended, horovodrun, run

PROGRAM = str(Path(__file__).with_name("elastic_program.py"))
LIMIT_SECONDS = 300  # importing PyTorch on a busy machine takes its time


def run_training(
    folder: Path,
    size: int,
    length: int,
    epochs: int,
    loaders: int,
    *events: str,
    options: tuple[str, ...] = (),
) -> Ended:
    (folder / "hosts").write_text(f"localhost:{size}\n")
    launch = [horovodrun(), "-np", str(size), "--host-discovery-script", f"cat {folder}/hosts"]
    launch += ["--blacklist-cooldown-range", "1", "1", *options]
    command = [sys.executable, PROGRAM, str(folder), str(length), str(epochs), str(loaders), *events]
    return run([*launch, *command], LIMIT_SECONDS)


def assert_ended_well(job: Ended) -> None:
    assert job.code == 0, job.output
    steps = re.findall(r"done: rank \d+ of \d+ step (\d+)", job.output)
    assert steps, job.output
    assert len(set(steps)) == 1, job.output


def test_every_sample_counts_once_with_loader_workers_over_a_death_a_join_and_a_leave(tmp_path):
    job = run_training(
        tmp_path, 2, 120, 2, 2, "kill@4", "hosts=localhost:3@8", "leave@40", options=("--min-np", "1")
    )

    assert_ended_well(job)
    assert "signal 9" in job.output, job.output
    assert "new epoch 3" in job.output, job.output


def test_workers_that_die_in_broadcast_commit_and_reset_lose_no_sample(tmp_path):
    job = run_training(
        tmp_path,
        4,
        96,
        1,
        0,
        "in-broadcast@2",
        "in-commit@4",
        "in-reset@1",
        options=("--min-np", "1", "--max-np", "4"),
    )

    assert_ended_well(job)
    assert "resets, " in job.output, job.output
    assert {"in-broadcast-2", "in-commit-4", "in-reset-1"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.soak
def test_random_schedules_end_well_and_leave_nothing_behind(tmp_path):
    # HVD_ELASTIC_SCHEDULES: how many; HVD_ELASTIC_SEED: the first one, for a repetition.
    count, first = (
        int(os.environ.get("HVD_ELASTIC_SCHEDULES", "40")),
        int(os.environ.get("HVD_ELASTIC_SEED", "1")),
    )
    for seed in range(first, first + count):
        source = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        size = source.randint(2, 6)
        events = []
        for _ in range(source.randint(1, 4)):
            kinds = [
                "kill",
                "leave",
                "in-broadcast",
                "in-commit",
                "in-reset",
                f"hosts=localhost:{source.randint(2, 6)}",
            ]
            events.append(f"{source.choice(kinds)}@{source.randint(1, 30)}")
        chaos = ("--chaos", f"kill={source.uniform(1, 4):.1f},seed={seed}") if source.random() < 0.5 else ()
        before = time.monotonic()
        job = run_training(
            folder, size, 60 * size, 2, source.randint(0, 1), *events, options=("--min-np", "1", *chaos)
        )
        print(seed, size, events, chaos, f"{time.monotonic() - before:.1f} s", flush=True)
        assert_ended_or_lost_all(job, seed)
        assert_nothing_is_left(folder)


def assert_ended_or_lost_all(job: Ended, seed: int) -> None:
    """All workers that had the state may die; that is said."""
    if "no worker that has the state of the training is left" in job.output:
        return
    try:
        assert_ended_well(job)
    except AssertionError as error:
        message = f"HVD_ELASTIC_SEED={seed} HVD_ELASTIC_SCHEDULES=1: {error}"
        raise AssertionError(message) from error


def assert_nothing_is_left(folder: Path) -> None:
    deadline = time.monotonic() + 20
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
