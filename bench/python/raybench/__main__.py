"""Measures, prints a table, writes JSON."""

# ruff: noqa: T201 - the table
from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import ray

from raybench import cnn, suite_init

INIT_GOALS = {2: 0.5, 8: 1.0}
OF_HOROVODRUN, OF_TORCH_TRAINER = 0.97, 1.0


def _row(case: str, value: float, goal: float, *, is_better_low: bool) -> dict[str, Any]:
    reached = value <= goal if is_better_low else value >= goal
    goal_text = f"goal {'<=' if is_better_low else '>='} {goal:g}"
    print(f"{case:<58} {value:8.3f}   {goal_text} {'ok' if reached else 'MISSED'}")
    return {"case": case, "value": value, "goal": goal, "reached": reached}


def _init_rows(sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    rows = []
    for size in sizes:
        measured = suite_init.measure(size, rounds)
        case = f"warm actors to hvd.init() on all, np={size}, s"
        rows.append(_row(case, measured["median_s"], INIT_GOALS.get(size, 1.0), is_better_low=True))
        rows[-1].update(measured)
    return rows


def _training_rows(steps: int, rounds: int) -> list[dict[str, Any]]:
    from raybench import suite_training  # noqa: PLC0415 - Ray Train takes seconds to import

    speeds = suite_training.measure(steps, rounds, 2)
    print("images/s, np=2:", ", ".join(f"{name} {speed:.0f}" for name, speed in speeds.items()))
    inside, outside = speeds["HorovodTrainer"], speeds["horovodrun"]
    rows = [
        _row("HorovodTrainer / horovodrun", inside / outside, OF_HOROVODRUN, is_better_low=False),
        _row(
            "HorovodTrainer / TorchTrainer (DDP on Gloo)",
            inside / speeds["TorchTrainer"],
            OF_TORCH_TRAINER,
            is_better_low=False,
        ),
    ]
    return [{**row, "images_per_second": speeds} for row in rows]


def main() -> None:
    """Run both suites."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--np", type=int, help="only this number of workers, and only the start")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", default="build/bench/ray.json")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    ray.cloudpickle.register_pickle_by_value(cnn)
    ray.cloudpickle.register_pickle_by_value(suite_init)
    ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)
    rows = _init_rows([arguments.np] if arguments.np else [2, 8], 5 if arguments.quick else 15)
    if not arguments.np:
        rows += _training_rows(20 if arguments.quick else 60, 1 if arguments.quick else 3)
    path = Path(arguments.json)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"bench": "ray", "load": os.getloadavg(), "rows": rows}, indent=1))
    print(f"written: {path}")


main()
