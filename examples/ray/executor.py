"""Functions on the ranks of a job with RayExecutor: workers that stay while the driver decides what is next.

python examples/ray/executor.py --workers 2
"""

from __future__ import annotations

import argparse

import ray
import torch

import horovod.torch as hvd
from horovod.ray import RayExecutor


class Learner:
    """Lives on every worker, from start to shutdown."""

    def __init__(self, lr: float) -> None:
        hvd.init()
        self.model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=self.model.named_parameters())
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)
        self.x = torch.linspace(0, 1, 512)[hvd.rank() :: hvd.size(), None]

    def train(self, steps: int) -> float:
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(self.model(self.x), 3 * self.x + 1)
            loss.backward()
            self.optimizer.step()
        return float(hvd.allreduce(loss.detach(), name="loss"))

    def weights(self) -> list[float]:
        return [parameter.item() for parameter in self.model.parameters()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()

    ray.init()
    executor = RayExecutor(RayExecutor.create_settings(timeout_s=60), num_workers=arguments.workers)
    executor.start(Learner, executable_kwargs={"lr": 0.3})
    try:
        for turn in range(3):
            losses = executor.execute(lambda learner: learner.train(50))
            print(f"turn {turn}: loss {losses[0]:.5f} on {len(losses)} workers")
        print("weights of rank 0:", executor.execute_single(lambda learner: learner.weights()))
    finally:
        executor.shutdown()


if __name__ == "__main__":
    main()
