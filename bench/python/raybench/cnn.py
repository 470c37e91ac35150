"""The CNN of examples/torch on random pictures: images per second of the whole job."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

BATCH = 64
WARM_UP_STEPS = 10
REPEATS = 5


def make_model() -> nn.Module:
    """Return the model of examples/torch/cnn.py."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def images_per_second(
    model: nn.Module, optimizer: Any, size: int, steps: int, barrier: Callable[[], Any]
) -> float:
    """Train, and return the best of some repeats: others on the machine only make it slower."""
    torch.set_num_threads(1)
    images, labels = torch.randn(BATCH, 1, 28, 28), torch.randint(10, (BATCH,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    for _ in range(WARM_UP_STEPS):
        step()
    best = 0.0
    for _ in range(REPEATS):
        barrier()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        barrier()
        best = max(best, size * steps * BATCH / (time.perf_counter() - start))
    return best


def with_horovod(steps: int) -> float:
    """Run on a rank of a Horovod job, however it was started."""
    import horovod.torch as hvd  # noqa: PLC0415 - contestants do not load each other

    hvd.init()
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return images_per_second(model, optimizer, hvd.size(), steps, hvd.barrier)


def with_ddp(steps: int) -> float:
    """Run on a worker of Ray's TorchTrainer."""
    import ray.train.torch  # noqa: PLC0415 - contestants do not load each other
    from torch import distributed  # noqa: PLC0415

    model = ray.train.torch.prepare_model(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return images_per_second(model, optimizer, distributed.get_world_size(), steps, distributed.barrier)


if __name__ == "__main__":
    import sys

    import horovod.torch

    speed = with_horovod(int(sys.argv[1]))
    if horovod.torch.rank() == 0:
        print("speed", speed)  # noqa: T201 - read by suite_training
