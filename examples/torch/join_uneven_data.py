"""Workers with different amounts of data: who has finished joins, and the others go on.

    horovodrun -np 2 python examples/torch/join_uneven_data.py

Without hvd.join() the workers that still have data would wait for ever for the gradients of those that
have none. A worker that has joined takes part in the reductions of the others with zeros.
"""

from __future__ import annotations

import argparse
import os

import torch
from pictures import CLASSES, make_pictures
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import horovod.torch as hvd


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--pictures", type=int, default=1024, help="of rank 0; rank 1 has half as many more")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    hvd.init()
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // hvd.local_size()))
    torch.manual_seed(1)

    # Every worker has pictures of its own, and rank 1 has more of them than rank 0.
    count = arguments.pictures + hvd.rank() * arguments.pictures // 2
    loader = DataLoader(make_pictures(count, seed=hvd.rank()), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), named_parameters=model.named_parameters()
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    for epoch in range(1, arguments.epochs + 1):
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        last = hvd.join()  # returns when all have joined, with the rank that came last

        # After the join all workers are back in step, and any operation may be used again. Whoever joined
        # early has not seen the last updates: take the model of the worker that has.
        hvd.broadcast_parameters(model.state_dict(), root_rank=last)
        hvd.broadcast_optimizer_state(optimizer, root_rank=last)
        # Averages over workers would be wrong, for they count unlike numbers of batches: sum both.
        sums = hvd.allreduce(torch.tensor([total, float(len(loader))]), name="sums", op=hvd.Sum)
        if hvd.rank() == 0:
            loss_sum, batches = sums.tolist()
            mean = loss_sum / batches
            print(f"epoch {epoch}: loss {mean:.3f} over {batches:.0f} batches, rank {last} joined last")


if __name__ == "__main__":
    main()
