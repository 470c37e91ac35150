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


def make_table(spark: Any, path: str, rows: int) -> None:
    """Write the table that both read."""
    numbers = sql.array(*[sql.rand(place).cast("float") for place in range(WIDTH)])
    frame = spark.range(rows).select(numbers.alias("features"), sql.rand(99).alias("y"))
    frame.repartition(4).write.parquet(path)


def read_with_pyarrow(path: str, batch_size: int) -> float:
    """Return the rows per second of a plain loop over the batches."""
    begin, rows = time.perf_counter(), 0
    for batch in ds.dataset(path, format="parquet").to_batches(batch_size=batch_size):
        rows += batch.num_rows
    return rows / (time.perf_counter() - begin)


class CountingStep:
    """Takes the place of a training step; the last one of an epoch writes the speed of this rank."""

    def __init__(self, folder: str, steps: int) -> None:
        """Skip the first batch, which waits for files to be opened."""
        self.folder, self.steps = folder, steps
        self.done, self.rows, self.begin = 0, 0, 0.0

    def __call__(self, *given: Any) -> Any:
        """Count rows; the parameters are those of horovod.spark.torch.remote.train_minibatch."""
        inputs, labels = given[4], given[5]
        self.done += 1
        if self.done == 1:
            self.begin = time.perf_counter()
        else:
            self.rows += len(inputs[0])
        if self.done == self.steps:
            speed = self.rows / (time.perf_counter() - self.begin)
            (Path(self.folder) / f"rank-{hvd.rank()}").write_text(str(speed))
        return [labels[0]], torch.zeros(())


def feed(store: Any, arguments: argparse.Namespace) -> list[float]:
    """Return the rows per second of each rank in one `fit`."""
    steps = arguments.rows // arguments.batch_size // arguments.np
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
            verbose=0,
            train_minibatch_fn=CountingStep(folder, steps),
        ).fit_on_parquet()
        return [float(path.read_text()) for path in sorted(Path(folder).iterdir())]


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
            rounds.append({"pyarrow": plain, "ranks": ranks, "ratio": min(ranks) / plain})
            slowest = min(ranks)
            line = f"pyarrow {plain:,.0f} rows/s, slowest rank {slowest:,.0f} rows/s: {slowest / plain:.2f}"
            print(line)  # noqa: T201 - a program
    spark.stop()
    ratio = statistics.median(entry["ratio"] for entry in rounds)
    print(f"median {ratio:.2f}, wanted {GOAL}")  # noqa: T201
    if arguments.json:
        result = {"np": arguments.np, "rows": arguments.rows, "rounds": rounds, "ratio": ratio, "goal": GOAL}
        Path(arguments.json).write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
