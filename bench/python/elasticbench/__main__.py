"""Measures, prints a table, writes JSON."""

# ruff: noqa: T201 - the table
from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from elasticbench import suite_hosts, suite_recovery
from elasticbench.watching import WatchedJob

RECOVERY_P50, RECOVERY_P99, PAUSE, TIMES_TORCHRUN = 0.3, 1.0, 0.5, 10.0
HOST_NOTICED, HOST_AFTER = 3.0, 1.0
OF_STATIC, COPIES_OF_COMMIT, GROWTH = 0.99, 1.3, 1.05


def _row(case: str, value: float, goal: float, *, is_better_low: bool, **more: Any) -> dict[str, Any]:
    reached = value <= goal if is_better_low else value >= goal
    text = f"figure {'<=' if is_better_low else '>='} {goal:g}"
    print(f"{case:<70} {value:9.3f}   {text} {'ok' if reached else 'MISSED'}", flush=True)
    return {"case": case, "value": value, "goal": goal, "reached": reached, **more}


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _recovery_rows(size: int, rounds: int) -> list[dict[str, Any]]:
    ours, pauses = suite_recovery.measure(size, rounds)
    print(f"kill to the next step: {statistics.median(ours):.2f} s, pause for a newcomer: ", end="")
    print(f"{statistics.median(pauses):.2f} s", flush=True)
    theirs = suite_recovery.measure_torchrun(size, max(2, rounds // 8))
    median = statistics.median(ours)
    of = f"{size} workers, state of ResNet-50"
    print(f"torchrun, kill to the next step: {statistics.median(theirs):.2f} s")
    return [
        _row(f"kill to the next step, p50, {of}, s", median, RECOVERY_P50, is_better_low=True, all=ours),
        _row(
            f"kill to the next step, p99, {of}, s", _percentile(ours, 0.99), RECOVERY_P99, is_better_low=True
        ),
        _row(
            "torchrun with restarts / ours, kill to the next step",
            statistics.median(theirs) / median,
            TIMES_TORCHRUN,
            is_better_low=False,
            torchrun=theirs,
        ),
        _row(
            f"pause for a newcomer, p50, {of}, s",
            statistics.median(pauses),
            PAUSE,
            is_better_low=True,
            all=pauses,
        ),
    ]


def _host_rows(rounds: int) -> list[dict[str, Any]]:
    reason = suite_hosts.why_not()
    if reason is not None:
        print(f"two hosts: left out: {reason}")
        return []
    noticed, after = suite_hosts.measure(rounds)
    what = "a host of two lost with its link"
    return [
        _row(f"{what}: noticed after, s", max(noticed), HOST_NOTICED, is_better_low=True, all=noticed),
        _row(f"{what}: notice to the next step, s", max(after), HOST_AFTER, is_better_low=True, all=after),
    ]


def _numbers_of_job(options: list[str], module: str, *arguments: str) -> list[list[int]]:
    with tempfile.TemporaryDirectory() as name:
        launch = [str(Path(sys.executable).with_name("horovodrun")), *options]
        job = WatchedJob([*launch, sys.executable, "-m", f"elasticbench.{module}", *arguments], Path(name))
        try:
            if job.finish(1800) != 0:
                raise RuntimeError(job.tail())
            return [numbers for word in ("commit", "steps", "kept") for numbers in job.lines(word)]
        finally:
            job.close()


def _steady_rows(rounds: int, seconds: float) -> list[dict[str, Any]]:
    elastic, static = ["-np", "2", "--min-np", "1"], ["-np", "2"]
    ((commit, copy),) = _numbers_of_job(elastic, "steady", "commit", str(rounds))
    ratios = []
    for _ in range(3):
        ours = _numbers_of_job(elastic, "steady", "steps", str(seconds))[0][0]
        ratios.append(ours / _numbers_of_job(static, "steady", "steps", str(seconds))[0][0])
    return [
        _row("commit of 100 MB / copy of 100 MB", commit / copy, COPIES_OF_COMMIT, is_better_low=True),
        _row(
            "steps per second, elastic / static, commits taken off",
            statistics.median(ratios),
            OF_STATIC,
            is_better_low=False,
            all=ratios,
        ),
    ]


def _reset_rows(count: int) -> list[dict[str, Any]]:
    early, late = _numbers_of_job(["-np", "2", "--min-np", "1"], "resets", str(count))
    names = ("memory", "descriptors", "threads")
    return [
        _row(
            f"{name} after {count} resets / after {count // 10}",
            late[i] / early[i],
            GROWTH,
            is_better_low=True,
        )
        for i, name in enumerate(names)
    ]


def main() -> None:
    """Run all suites."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--np", type=int, default=4, help="workers of the jobs that lose one")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", default="build/bench/elastic.json")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    print(f"load of the machine: {load:.1f} on {cores} cores{', busy' if load > cores / 2 else ''}")
    quick = arguments.quick
    rows = _recovery_rows(arguments.np, 5 if quick else 40)
    rows += _host_rows(2 if quick else 10)
    rows += _steady_rows(10 if quick else 40, 3 if quick else 10)
    rows += _reset_rows(100 if quick else 1000)
    path = Path(arguments.json)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"bench": "elastic", "load": os.getloadavg(), "rows": rows}, indent=1))
    print(f"written: {path}")


if __name__ == "__main__":
    main()
