"""Trains a line through noisy points while workers come and go, with horovod.spark.run_elastic.

python examples/spark/run_elastic.py                                                Spark in this process
spark-submit --master yarn examples/spark/run_elastic.py --min-proc 4 --max-proc 8  on a cluster

Kill one of the processes that it prints: the others go on, and Spark brings another.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from pyspark.sql import SparkSession

import horovod.spark


def train(steps: int, seconds_per_step: float) -> dict[str, float]:
    """Runs on every worker from its top; newcomers get the state at `fit(state)`."""
    import torch  # noqa: PLC0415

    import horovod.torch as hvd  # noqa: PLC0415

    hvd.init()
    print(f"process {os.getpid()} is rank {hvd.rank()} of {hvd.size()}")
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    random = torch.Generator().manual_seed(os.getpid())

    @hvd.elastic.run
    def fit(state: hvd.elastic.TorchState) -> None:
        while state.step < steps:
            x = torch.rand(256, 1, generator=random)
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), 3.0 * x + 1.0)
            loss.backward()
            optimizer.step()
            if hvd.rank() == 0 and state.step % 50 == 0:
                print(f"step {state.step}: loss {loss.item():.4f} on {hvd.size()} ranks")
            state.step += 1
            time.sleep(seconds_per_step)
            state.commit()

    fit(hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0))
    return {"rank": hvd.rank(), "slope": model.weight.item(), "intercept": model.bias.item()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--min-proc", type=int, default=1, help="go on while there are so many ranks")
    parser.add_argument("--max-proc", type=int, default=2, help="never use more tasks")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seconds-per-step", type=float, default=0.05, help="so that there is time to watch")
    given = parser.parse_args()

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("horovod.spark.run_elastic")
    if "SPARK_ENV_LOADED" not in os.environ:  # not started by spark-submit
        builder = builder.master("local[2]")
    spark = builder.getOrCreate()
    results = horovod.spark.run_elastic(
        train,
        args=(given.steps, given.seconds_per_step),
        min_num_proc=given.min_proc,
        max_num_proc=given.max_proc,
    )
    for result in results:
        print("rank {rank}: y = {slope:.3f} x + {intercept:.3f}".format(**result))
    spark.stop()


if __name__ == "__main__":
    main()
