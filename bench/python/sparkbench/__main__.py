"""All measurements of horovod.spark, as readings in a folder.

usage: python -m sparkbench --out FOLDER [--np N] [--quick] [--only PART ...]

One Spark session, local[8]: its Python workers are warm after the first job, which does not count.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchlib.parts import parse_options, run_parts
from benchlib.readings import CaseReadings, Entrant, Round, save
from pyspark.sql import SparkSession

import horovod
import horovod.spark

from .feeding import measure_feeding
from .ranks import seconds_per_step, time_of_init

_SLOTS: Final = 8
_LIMITS_MS: Final = {2: 500.0, 8: 1000.0}


def _start_session() -> Any:
    folder = str(Path(__file__).resolve().parent.parent)
    os.environ.update(PYSPARK_PYTHON=sys.executable, OMP_NUM_THREADS="1", PYTHONPATH=folder)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    builder = SparkSession.builder.master(f"local[{_SLOTS}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    return builder.config("spark.log.level", "ERROR").getOrCreate()


def measure_start(np: int, count: int, front_end: str | None = None) -> CaseReadings:
    """Time jobs from the start of the first process to the end of the last hvd.init()."""
    rounds = []
    for _ in range(count + 1):
        times = horovod.spark.run(time_of_init, (front_end,), num_proc=np)
        took = max(done for _, done in times) - min(began for began, _ in times)
        rounds.append(Round([1e3 * took, _LIMITS_MS[np]]))
    what = "init" if front_end is None else f"import {front_end} and init"
    entrants = [Entrant("spark.run", "ours"), Entrant("figure", "limit")]
    return CaseReadings(f"np={np} start: {what}", "ms", np, entrants, rounds[1:])


def measure_training(np: int, count: int, steps: int) -> CaseReadings:
    """Time steps in jobs of Spark and of horovodrun, in turn; the slowest rank counts."""

    def slowest(run: Callable[..., list[float]]) -> float:
        return 1e3 * max(run(seconds_per_step, (steps,), num_proc=np))

    rounds = [Round([slowest(horovod.spark.run), slowest(horovod.run)]) for _ in range(count)]
    entrants = [Entrant("spark.run", "ours"), Entrant("horovodrun", "peer")]
    return CaseReadings(f"np={np} throughput: CNN", "ms", np, entrants, rounds)


def main() -> int:
    """Run the parts one after the other."""
    options = parse_options("sparkbench")
    jobs, steps = (5, 100) if options.quick else (15, 400)
    spark = _start_session()

    def start(out: Path) -> None:
        cases = [measure_start(np, jobs) for np in _LIMITS_MS]
        save(out, "spark", "start", [*cases, measure_start(2, jobs, "horovod.torch")])

    def training(out: Path) -> None:
        save(out, "spark", "training", [measure_training(options.np, jobs, steps)])

    def feeding(out: Path) -> None:
        rounds, rows = (2, 500_000) if options.quick else (5, 2_000_000)
        save(out, "spark", "feeding", measure_feeding(spark, options.np, rounds, rows))

    parts = {"start": start, "training": training, "feeding": feeding}
    try:
        return run_parts("spark", parts, options)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
