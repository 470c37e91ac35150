"""What feeding an estimator costs: TorchEstimator's ranks against pyarrow, reading the same Parquet alone.

Training does nothing, so that feeding is all there is to measure. Both ways are measured in turns, since
other work of the machine hits both: by the clock, and by processor time, which is what training loses.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset as ds
import torch
from benchlib.readings import CaseReadings, Entrant, Round
from pyspark.sql import functions as sql

import horovod.torch as hvd
from horovod.spark.torch import Store, TorchEstimator

_WIDTH: Final = 16
_EPOCHS: Final = 4
_BATCH_SIZE: Final = 1024
_ROWS_OF_A_VALUE: Final = 1_000_000
_CLOCKS: Final = ("clock", "processor time")


def _write_table(spark: Any, path: str, rows: int) -> None:
    numbers = sql.array(*[sql.rand(place).cast("float") for place in range(_WIDTH)])
    frame = spark.range(rows).select(numbers.alias("features"), sql.rand(99).alias("y"))
    frame.repartition(4).write.parquet(path)


def _read_with_pyarrow(path: str) -> list[float]:
    """Return the seconds per row of a plain loop over the batches, by both clocks."""
    begin, begin_cpu, rows = time.perf_counter(), time.process_time(), 0
    for batch in ds.dataset(path, format="parquet").to_batches(batch_size=_BATCH_SIZE):
        rows += batch.num_rows
    return [(time.perf_counter() - begin) / rows, (time.process_time() - begin_cpu) / rows]


class CountingStep:
    """Takes the place of a training step; the last one writes the seconds per row, by both clocks."""

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
            (Path(self.folder) / f"rank-{hvd.rank()}").write_text(
                json.dumps([each / self.rows for each in seconds])
            )
        return [labels[0]], torch.zeros(())


def _feed(store: Any, np: int, rows: int) -> list[float]:
    """Return the seconds per row of the slowest rank in one `fit`, by both clocks.

    Several epochs, so that what was read before the first step does not count for much.
    """
    steps = _EPOCHS * (rows // _BATCH_SIZE // np)
    with tempfile.TemporaryDirectory() as folder:
        model = torch.nn.Linear(_WIDTH, 1)
        TorchEstimator(
            num_proc=np,
            store=store,
            model=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            loss=torch.nn.MSELoss(),
            input_shapes=[[-1, _WIDTH]],
            feature_cols=["features"],
            label_cols=["y"],
            batch_size=_BATCH_SIZE,
            epochs=_EPOCHS,
            verbose=0,
            train_minibatch_fn=CountingStep(folder, steps),
        ).fit_on_parquet()
        ranks = [json.loads(path.read_text()) for path in sorted(Path(folder).iterdir())]
    return [max(each) for each in zip(*ranks, strict=True)]


def measure_feeding(spark: Any, np: int, count: int, rows: int) -> list[CaseReadings]:
    """Return a case for each clock, in milliseconds per million rows of a rank."""
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(folder, save_runs=False)
        path = store.get_train_data_path()
        _write_table(spark, path, rows)
        for _ in range(count):
            plain = _read_with_pyarrow(store.get_localized_path(path))
            taken.append((_feed(store, np, rows), plain))
    entrants = [Entrant("TorchEstimator", "ours"), Entrant("pyarrow", "peer")]
    scale = 1e3 * _ROWS_OF_A_VALUE
    return [
        CaseReadings(
            f"np={np} feeding: {name}",
            "ms",
            np,
            entrants,
            [Round([scale * each[clock] for each in one]) for one in taken],
        )
        for clock, name in enumerate(_CLOCKS)
    ]
