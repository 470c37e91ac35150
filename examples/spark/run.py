"""Trains a line through noisy points on every slot of a Spark application, with horovod.spark.run.

python examples/spark/run.py                                   Spark in this process, two slots
spark-submit --master yarn examples/spark/run.py --num-proc 8  on a cluster
"""

from __future__ import annotations

import argparse
import os
import sys

from pyspark.sql import SparkSession

import horovod.spark


def train(steps: int, seed: int) -> dict[str, float]:
    """Runs on every rank; what is imported here is needed on the executors alone."""
    import torch  # noqa: PLC0415

    import horovod.torch as hvd  # noqa: PLC0415

    hvd.init()
    random = torch.Generator().manual_seed(seed + hvd.rank())
    x = torch.rand(1024, 1, generator=random)
    y = 3.0 * x + 1.0 + 0.1 * torch.randn(x.shape, generator=random)

    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    for step in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if hvd.rank() == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    return {"rank": hvd.rank(), "slope": model.weight.item(), "intercept": model.bias.item()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-proc", type=int, help="ranks; default: the parallelism of the application")
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("horovod.spark.run")
    if "SPARK_ENV_LOADED" not in os.environ:  # not started by spark-submit
        builder = builder.master("local[2]")
    spark = builder.getOrCreate()
    for result in horovod.spark.run(train, args=(given.steps,), kwargs={"seed": 1}, num_proc=given.num_proc):
        print("rank {rank}: y = {slope:.3f} x + {intercept:.3f}".format(**result))
    spark.stop()


if __name__ == "__main__":
    main()
