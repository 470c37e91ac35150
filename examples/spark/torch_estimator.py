"""TorchEstimator: a PyTorch model trained on a DataFrame, as a stage of Spark.

python examples/spark/torch_estimator.py --num-proc 2                       # local[2]
spark-submit examples/spark/torch_estimator.py --store hdfs:///tmp/shop     # on a cluster
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

import torch
from pyspark.ml import Pipeline
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from horovod.spark.torch import Store, TorchEstimator


def sales(spark: SparkSession, rows: int):  # noqa: ANN201 - a DataFrame
    """Return a table of sales: what a shop sells depends on its size, the weekday and a promotion."""
    columns = spark.range(rows).select(
        (sql.rand(1) * 3 + 1).alias("size"),
        (sql.col("id") % 7).cast("double").alias("weekday"),
        (sql.rand(2) < 0.3).cast("double").alias("promotion"),
        (sql.randn(3) * 0.1).alias("noise"),
    )
    weekend = sql.when(sql.col("weekday") >= 5, 1.5).otherwise(1.0)
    amount = sql.col("size") * weekend * (1 + 0.4 * sql.col("promotion")) + sql.col("noise")
    return columns.withColumn("sales", amount).drop("noise")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-proc", type=int, default=2)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--store", help="folder that driver and executors reach; default: a temporary one")
    parser.add_argument("--master", default=None, help="default: local[NUM_PROC], or that of spark-submit")
    options = parser.parse_args()

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("torch_estimator")
    if options.master or "SPARK_ENV_LOADED" not in os.environ:  # set by spark-submit, which names a master
        builder = builder.master(options.master or f"local[{options.num_proc}]")
    spark = builder.getOrCreate()
    train, test = sales(spark, options.rows).randomSplit([0.9, 0.1], seed=1)

    model = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    estimator = TorchEstimator(
        num_proc=options.num_proc,
        store=Store.create(options.store or tempfile.mkdtemp(prefix="horovod-example-")),
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.005),
        loss=torch.nn.MSELoss(),
        input_shapes=[[-1, 3]],
        feature_cols=["features"],
        label_cols=["sales"],
        validation=0.1,
        batch_size=64,
        epochs=options.epochs,
        verbose=0,
    )
    assembler = VectorAssembler(inputCols=["size", "weekday", "promotion"], outputCol="features")
    fitted = Pipeline(stages=[assembler, estimator]).fit(train)

    for entry in fitted.stages[-1].getHistory():
        losses = entry["train"]["loss"], entry["validation"]["loss"]
        print("epoch {}: training loss {:.4f}, validation loss {:.4f}".format(entry["epoch"], *losses))
    predictions = fitted.transform(test)
    error = predictions.select(sql.avg(sql.abs(sql.col("sales") - sql.col("sales__output")))).first()[0]
    print(f"mean error on {test.count()} other rows: {error:.3f}")
    spark.stop()


if __name__ == "__main__":
    main()
