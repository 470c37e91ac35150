"""The same function on this machine and on Spark, with HorovodRunner: only np changes.

python examples/spark/horovod_runner.py --np -2     two processes of this machine, without Spark
python examples/spark/horovod_runner.py --np 2      two barrier tasks
"""

from __future__ import annotations

import argparse
import os
import sys

from horovod.spark import HorovodRunner, log_to_driver


def main(epochs: int) -> float:
    """Runs on every rank; the value of rank 0 comes back."""
    import torch  # noqa: PLC0415

    import horovod.torch as hvd  # noqa: PLC0415

    hvd.init()
    torch.manual_seed(1)  # the same start everywhere
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.01), named_parameters=model.named_parameters()
    )
    random = torch.Generator().manual_seed(10 + hvd.rank())  # other data on every rank
    points = torch.randn(512, 8, generator=random)
    labels = (points.sum(dim=1) > 0).long()
    accuracy = torch.zeros(())
    for epoch in range(epochs):
        for chosen in torch.randperm(len(points), generator=random).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(points[chosen]), labels[chosen]).backward()
            optimizer.step()
        accuracy = hvd.allreduce((model(points).argmax(dim=1) == labels).float().mean())
        if hvd.rank() == 0:
            log_to_driver(f"epoch {epoch}: accuracy {accuracy.item():.3f}")
    return accuracy.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--np", type=int, default=2, help="barrier tasks; negative: processes of this machine"
    )
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args()
    if given.np >= 0:
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        SparkSession.builder.master(f"local[{max(given.np, 2)}]").appName("HorovodRunner").getOrCreate()
    print(f"rank 0 returned {HorovodRunner(np=given.np).run(main, epochs=given.epochs):.3f}")
