"""Elastic training on Ray: workers and nodes come and go, the others go on in their processes.

python examples/ray/elastic_executor.py --workers 2

On a cluster (RAY_ADDRESS) leave --workers out: the job uses every node there is, also those that come later.
"""

from __future__ import annotations

import argparse
from typing import Any

import ray
import torch

import horovod.torch as hvd
from horovod.ray import RayExecutor, ray_logger


def train(epochs: int) -> float:
    """Runs on every worker from its top; newcomers get the state at `fit(state)`."""
    hvd.init()
    x = torch.linspace(0, 1, 512)[:, None]
    data = torch.utils.data.TensorDataset(x, 3 * x + 1)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    @hvd.elastic.run
    def fit(state: hvd.elastic.TorchState) -> float:
        loss = torch.zeros(())
        loader = torch.utils.data.DataLoader(data, batch_size=16, sampler=state.sampler)
        while state.epoch < epochs:
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
                loss.backward()
                optimizer.step()
                state.sampler.record_batch(0, len(inputs))
                state.commit()
            average = float(hvd.allreduce(loss.detach(), name="loss"))
            if hvd.rank() == 0:
                ray_logger.log({"epoch": state.epoch, "loss": average, "workers": hvd.size()})
            state.epoch += 1
            state.sampler.set_epoch(state.epoch)
            state.commit()
        return float(hvd.allreduce(loss.detach(), name="last"))

    sampler = hvd.elastic.ElasticSampler(data)
    return fit(hvd.elastic.TorchState(model=model, optimizer=optimizer, sampler=sampler, epoch=0))


def show(said: dict[str, Any]) -> None:
    print(f"epoch {said['epoch']}: loss {said['loss']:.5f} on {said['workers']} workers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--workers", type=int, help="never more than these; default: as many as there is room for"
    )
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()

    ray.init()
    settings = RayExecutor.create_settings(timeout_s=60)
    executor = RayExecutor(settings, min_workers=1, max_workers=arguments.workers)
    executor.start()
    try:
        losses = executor.run(train, args=[arguments.epochs], callbacks=[show])
        print(f"{len(losses)} workers finished with loss {losses[0]:.5f}")
    finally:
        executor.shutdown()


if __name__ == "__main__":
    main()
