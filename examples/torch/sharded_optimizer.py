"""ZeRO-1: the optimizer's state is divided among the workers, its checkpoint is not.

    horovodrun -np 2 python examples/torch/sharded_optimizer.py
    horovodrun -np 2 python examples/torch/sharded_optimizer.py --checkpoint /tmp/model.pt
    horovodrun -np 3 python examples/torch/sharded_optimizer.py --checkpoint /tmp/model.pt   # goes on

AdamW keeps two numbers for each parameter; with N workers, each keeps them for 1/N of the parameters.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
from pictures import CLASSES, make_pictures
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import horovod.torch as hvd


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--pictures", type=int, default=2048)
    parser.add_argument("--max-norm", type=float, default=1.0, help="longest gradient after clipping")
    parser.add_argument("--checkpoint", type=Path, help="go on from this file; write it at the end")
    return parser.parse_args()


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    values = [value for state in optimizer.state.values() for value in state.values()]
    return sum(value.numel() * value.element_size() for value in values if isinstance(value, torch.Tensor))


def main() -> None:
    arguments = parse_arguments()
    hvd.init()
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // hvd.local_size()))
    torch.manual_seed(1)

    pictures = make_pictures(arguments.pictures, seed=1)
    sampler = DistributedSampler(pictures, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(pictures, batch_size=32, sampler=sampler)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)  # before it is sharded: all must be equal
    optimizer = hvd.ShardedOptimizer(torch.optim.AdamW(model.parameters(), lr=1e-3))
    if arguments.checkpoint and arguments.checkpoint.exists():
        saved = torch.load(arguments.checkpoint)  # every worker reads the whole, and takes its part
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])

    for epoch in range(1, arguments.epochs + 1):
        sampler.set_epoch(epoch)
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            # Gradients are spread over the workers, so the optimizer knows their length, torch does not.
            optimizer.clip_grad_norm_(arguments.max_norm)
            optimizer.step()
            total += loss.item()
        mean = hvd.allreduce(torch.tensor([total / len(loader)]), name="loss").item()
        if hvd.rank() == 0:
            print(f"epoch {epoch}: loss {mean:.3f}")

    sizes = hvd.allgather_object(state_bytes(optimizer))
    if hvd.rank() == 0:
        print(f"bytes of optimizer state per worker: {sizes}")
    if arguments.checkpoint:
        optimizer.consolidate_state_dict(to=0)  # all workers take part, rank 0 gets the whole
        if hvd.rank() == 0:
            whole = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(whole, arguments.checkpoint)
            print(f"saved {arguments.checkpoint}: loads with any number of workers, and into a plain AdamW")


if __name__ == "__main__":
    main()
