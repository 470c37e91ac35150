"""torch's own DistributedDataParallel on the backend "horovod".

    horovodrun -np 2 python examples/torch/ddp.py
    torchrun --nproc-per-node 2 examples/torch/ddp.py

A program that uses torch.distributed changes two lines: the import, and the name of the backend.
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from pictures import CLASSES, make_pictures
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import horovod.torch  # noqa: F401 - makes the backend known to torch


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--pictures", type=int, default=2048)
    parser.add_argument("--backend", default="horovod", help="horovod, or gloo to compare (under torchrun)")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    # horovod:// needs no address and no port: the job that horovodrun or torchrun has started is the
    # meeting place, and a process without a launcher is a job of one.
    init_method = "horovod://" if arguments.backend == "horovod" else "env://"
    dist.init_process_group(arguments.backend, init_method=init_method)
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // dist.get_world_size()))
    torch.manual_seed(1)

    pictures = make_pictures(arguments.pictures, seed=1)
    sampler = DistributedSampler(pictures)
    loader = DataLoader(pictures, batch_size=32, sampler=sampler)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 128), nn.ReLU(), nn.Linear(128, CLASSES))
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    for epoch in range(1, arguments.epochs + 1):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(parallel(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            batches = len(loader) * dist.get_world_size()
            print(f"epoch {epoch}: loss {total.item() / batches:.3f} on {dist.get_world_size()} workers")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
