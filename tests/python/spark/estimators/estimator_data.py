"""Tables and backends of these tests."""

from __future__ import annotations

import os
from unittest import mock

import cloudpickle
import torch
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import types as T  # noqa: N812

import horovod
from horovod.spark.common.backend import Backend
from horovod.spark.common.datamodule import DataModule


def xor_frame(spark, rows=64):
    """Return the table of `xor` with columns of many kinds: scalars, an array and a vector."""
    data = []
    for index in range(rows):
        x1, x2 = index % 2, (index // 2) % 2
        y = float(x1 ^ x2)
        data.append(
            (x1, float(x2), [float(x1), float(x2)], Vectors.dense([x1, x2]), y, 1.0 - y, 0.5, index % 8 == 0)
        )
    kinds = {
        "x1": T.IntegerType(),
        "x2": T.DoubleType(),
        "array": T.ArrayType(T.FloatType()),
        "features": VectorUDT(),
        "y": T.FloatType(),
        "z": T.DoubleType(),
        "weight": T.FloatType(),
        "held_out": T.BooleanType(),
    }
    return spark.createDataFrame(data, T.StructType([T.StructField(*each) for each in kinds.items()]))


def marking(compressor, folder):
    """Return a compressor that leaves a file for each process that has compressed with it."""

    class Marking(compressor):
        @staticmethod
        def compress(tensor):
            (folder / str(os.getpid())).touch()
            return compressor.compress(tensor)

    folder.mkdir()
    return Marking


class InlineBackend(Backend):
    """Runs a single rank in the process of the test: quick, where ranks do not matter."""

    def run(self, fn, args=(), kwargs=None, env=None):
        call, call_args = cloudpickle.loads(cloudpickle.dumps((fn, args)))
        return [call(*call_args, **(kwargs or {}))]

    def num_processes(self):
        return 1


class ProcessBackend(Backend):
    """Starts the processes on this machine without Spark: what is tested is the estimator alone."""

    def __init__(self, processes=2):
        self.processes = processes

    def run(self, fn, args=(), kwargs=None, env=None):
        with mock.patch.dict(os.environ, {**(env or {}), "OMP_NUM_THREADS": "1"}):
            return horovod.run(fn, args=args, kwargs=kwargs or {}, num_proc=self.processes)

    def num_processes(self):
        return self.processes


class ThreeBatches(DataModule):
    """The same three batches in every epoch, so that a test can do the arithmetic itself.

    For validation there is a batch of two rows and one of a single row.
    """

    FEATURES = ((1.0, 2.0), (3.0, -1.0), (0.5, 4.0))
    LABELS = ((1.0, 0.0), (2.0, 5.0), (-1.0, 3.0))

    def train_data(self):
        return [
            {"x": torch.tensor(x), "y": torch.tensor(y)}
            for x, y in zip(self.FEATURES, self.LABELS, strict=True)
        ]

    def val_data(self):
        return [
            {"x": torch.tensor([1.0, 2.0]), "y": torch.zeros(2)},
            {"x": torch.tensor([3.0]), "y": torch.zeros(1)},
        ]


def stepped_weight(groups, lr, *, mean_of):
    """Return the weight w of w * x after a step of SGD for each group of those batches, from 0 on.

    The loss of a batch is the mean of the squares; a group's is the sum of its losses, divided by `mean_of`.
    """
    weight = 0.0
    for group in groups:
        gradient = 0.0
        for index in group:
            rows = list(zip(ThreeBatches.FEATURES[index], ThreeBatches.LABELS[index], strict=True))
            gradient += sum(2 * x * (weight * x - y) for x, y in rows) / len(rows)
        weight -= lr * gradient / mean_of
    return weight
