"""Rows per second that TorchEstimator feeds to each rank, against pyarrow reading the same Parquet alone.

    PYTHONPATH=bench/python .venv-spark/bin/python -m estimatorbench --np 2 --json result.json

Training does nothing, so that feeding is all there is to measure. Both ways are measured in turns, since
other work of the machine hits both; the figure is the median of the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable

import pyarrow.dataset as ds
import torch
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import horovod.torch as hvd
from horovod.spark.torch import Store, TorchEstimator

WIDTH = 16
GOAL = 0.8
EPOCHS = 4


def make_table(spark: Any, path: str, rows: int) -> None:
    """Write the table that both read."""
    numbers = sql.array(*[sql.rand(place).cast("float") for place in range(WIDTH)])
    frame = spark.range(rows).select(numbers.alias("features"), sql.rand(99).alias("y"))
    frame.repartition(4).write.parquet(path)


def read_with_pyarrow(path: str, batch_size: int) -> tuple[float, float]:
    """Return the rows per second, and per second of processor time, of a plain loop over the batches."""
    begin, begin_cpu, rows = time.perf_counter(), time.process_time(), 0
    for batch in ds.dataset(path, format="parquet").to_batches(batch_size=batch_size):
        rows += batch.num_rows
    return rows / (time.perf_counter() - begin), rows / (time.process_time() - begin_cpu)


class CountingStep:
    """Takes the place of a training step; the last one writes the speed of this rank, by both clocks."""

    def __init__(self, folder: str, steps: int) -> None:
        """Skip the first batch, which waits for files to be opened."""
        self.folder, self.steps = folder, steps
        self.done, self.rows, self.begin, self.begin_cpu = 0, 0, 0.0, 0.0

    def __call__(self, *given: Any) -> Any:
        """Count rows; the parameters are those of horovod.spark.torch.remote.train_minibatch."""
        inputs, labels = given[4], given[5]
        self.done += 1
        if self.done == 1:
            self.begin, self.begin_cpu = time.perf_counter(), time.process_time()
        else:
            self.rows += len(inputs[0])
        if self.done == self.steps:
            seconds = time.perf_counter() - self.begin, time.process_time() - self.begin_cpu
            speeds = [self.rows / each for each in seconds]
            (Path(self.folder) / f"rank-{hvd.rank()}").write_text(json.dumps(speeds))
        return [labels[0]], torch.zeros(())


def feed(store: Any, arguments: argparse.Namespace) -> list[list[float]]:
    """Return the rows per second of each rank in one `fit`, by both clocks.

    Several epochs, so that what was read before the first step does not count for much.
    """
    steps = EPOCHS * (arguments.rows // arguments.batch_size // arguments.np)
    with tempfile.TemporaryDirectory() as folder:
        model = torch.nn.Linear(WIDTH, 1)
        TorchEstimator(
            num_proc=arguments.np,
            store=store,
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            loss=torch.nn.MSELoss(),
            input_shapes=[[-1, WIDTH]],
            feature_cols=["features"],
            label_cols=["y"],
            batch_size=arguments.batch_size,
            epochs=EPOCHS,
            verbose=0,
            train_minibatch_fn=CountingStep(folder, steps),
        ).fit_on_parquet()
        return [json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--np", type=int, default=2)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    spark = (
        SparkSession.builder.master(f"local[{arguments.np}]")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(folder, save_runs=False)
        make_table(spark, store.get_train_data_path(), arguments.rows)
        rounds = []
        for _ in range(arguments.rounds):
            plain = read_with_pyarrow(
                store.get_localized_path(store.get_train_data_path()), arguments.batch_size
            )
            ranks = feed(store, arguments)
            ratios = [min(speeds) / of for speeds, of in zip(zip(*ranks, strict=True), plain, strict=True)]
            rounds.append({"pyarrow": plain, "ranks": ranks, "ratios": ratios})
            slowest = min(speeds[0] for speeds in ranks)
            line = f"pyarrow {plain[0]:,.0f} rows/s, slowest rank {slowest:,.0f} rows/s: {ratios[0]:.2f}"
            print(f"{line}; by processor time {ratios[1]:.2f}", flush=True)  # noqa: T201 - a program
    spark.stop()
    ratio, ratio_cpu = (statistics.median(entry["ratios"][clock] for entry in rounds) for clock in (0, 1))
    print(f"median {ratio:.2f}, by processor time {ratio_cpu:.2f}; wanted {GOAL}")  # noqa: T201
    if arguments.json:
        result = {
            "np": arguments.np,
            "rows": arguments.rows,
            "rounds": rounds,
            "ratio": ratio,
            "ratio_cpu": ratio_cpu,
            "goal": GOAL,
        }
        Path(arguments.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
