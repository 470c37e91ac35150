"""A program that fits, predicts, saves and loads, on the Spark that its argument names; prints the result."""

from __future__ import annotations

import os
import sys
from pathlib import Path

folder = Path(sys.argv[2])
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ["PYSPARK_PYTHON"] = sys.executable

import torch
from pyspark.sql import SparkSession

from horovod.spark.torch import Store, TorchEstimator, TorchModel


def session(master):
    if master == "connect":
        return SparkSession.builder.remote("local[2]").getOrCreate()
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.log.level": "ERROR"}
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


spark = session(sys.argv[1])
rows = [([float(index % 2), float(index // 2 % 2)], float(index % 2)) for index in range(32)]
frame = spark.createDataFrame(rows, "features array<double>, y double")
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
estimator = TorchEstimator(
    num_proc=2,
    store=Store.create(str(folder / "store")),
    model=model,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.2),
    loss=torch.nn.functional.binary_cross_entropy,
    input_shapes=[[-1, 2]],
    feature_cols=["features"],
    label_cols=["y"],
    batch_size=4,
    epochs=5,
    verbose=0,
    partitions_per_process=1,
)
estimator.save(str(folder / "estimator"))
fitted = TorchEstimator.load(str(folder / "estimator")).setStore(estimator.getStore()).fit(frame)
fitted.save(str(folder / "model"))
found = TorchModel.load(str(folder / "model")).transform(frame).collect()
losses = [entry["train"]["loss"] for entry in fitted.getHistory()]
right = sum(round(row["y__output"]) == row["y"] for row in found)
spark.stop()
print(f"RESULT rows {len(found)} right {right} learned {losses[-1] < losses[0]}")
