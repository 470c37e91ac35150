"""Trains a small CNN on pictures of ten classes, on any number of workers.

    python examples/torch/cnn.py                        one worker
    horovodrun -np 2 python examples/torch/cnn.py       two workers

Lines with a number in brackets are what Horovod adds to a program for one process. The share of time
spent communicating is what each step waits for the gradients of the other workers; it needs three
lines more, and is there to be looked at.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
from pictures import CLASSES, make_pictures
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd  # [1]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64, help="pictures per worker and step")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate of one worker")
    parser.add_argument("--train-pictures", type=int, default=4096)
    parser.add_argument("--test-pictures", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def make_model() -> nn.Module:
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
        nn.Linear(64, CLASSES),
    )


def make_loader(pictures: TensorDataset, batch_size: int, seed: int) -> DataLoader:
    """Give each worker its own part of the pictures, in another order every epoch."""
    sampler = DistributedSampler(pictures, num_replicas=hvd.size(), rank=hvd.rank(), seed=seed)  # [2]
    return DataLoader(pictures, batch_size=batch_size, sampler=sampler)


def train_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> dict[str, float]:
    model.train()
    total_loss, waited = 0.0, 0.0
    start = time.perf_counter()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()  # hooks hand over each gradient as soon as it is complete

        # optimizer.step() alone would do. It is taken apart here to see how long the gradients take.
        before = time.perf_counter()
        optimizer.synchronize()
        waited += time.perf_counter() - before
        with optimizer.skip_synchronize():
            optimizer.step()
        total_loss += loss.item()
    seconds = time.perf_counter() - start
    return {
        "loss": total_loss / len(loader),
        "images/s": hvd.size() * len(loader.sampler) / seconds,
        "communicating": waited / seconds,
    }


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    right = sum((model(images).argmax(dim=1) == labels).sum() for images, labels in loader)
    return float(right) / len(loader.sampler)


def averaged(values: dict[str, float]) -> dict[str, float]:
    """What the workers measured, averaged over all of them."""
    means = hvd.allreduce(torch.tensor(list(values.values())), name="metrics")
    return dict(zip(values, means.tolist(), strict=True))


def main() -> None:
    arguments = parse_arguments()
    hvd.init()  # [3] now the process knows its rank and the size of the job
    # Workers of one machine share its cores.
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // hvd.local_size()))
    torch.manual_seed(arguments.seed)

    train = make_loader(make_pictures(arguments.train_pictures, seed=1), arguments.batch_size, arguments.seed)
    test = make_loader(make_pictures(arguments.test_pictures, seed=2), 256, arguments.seed)
    model = make_model()
    # A batch is as many times larger as there are workers, so a step may be longer.
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr * hvd.size(), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())  # [4]
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)  # [5] all start from the same parameters

    if hvd.rank() == 0:  # one worker talks for all
        print(f"{hvd.size()} workers, gradients reduced in mode '{hvd.gradient_schedule().mode}'")
    for epoch in range(1, arguments.epochs + 1):
        train.sampler.set_epoch(epoch)
        values = averaged({**train_epoch(model, train, optimizer), "accuracy": accuracy(model, test)})
        if hvd.rank() == 0:
            print(
                f"epoch {epoch}: loss {values['loss']:.3f}, accuracy {values['accuracy']:6.1%}, "
                f"{values['images/s']:6.0f} images/s, "
                f"{values['communicating']:5.1%} of the time communicating",
            )


if __name__ == "__main__":
    main()
