"""Elastic jobs with PyTorch: every sample counts once, over deaths, leaves and joins at any place."""

from __future__ import annotations

import re
import sys
from pathlib import Path

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
