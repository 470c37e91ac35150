"""A rank whose memory is measured: python -m torchbench.memory plain|horovod PLACE."""

from __future__ import annotations

import os
import sys
from typing import Final

import torch
from benchlib.memory import write_used_mib
from benchlib.parameters import RESNET50

from .problems import cheap

_STEPS: Final = 20


def main(way: str, place: str) -> None:
    """Train and write down what this rank occupies, with its gradients still there."""
    torch.set_num_threads(1)
    problem = cheap(RESNET50, int(os.environ["HOROVOD_RANK"]))
    optimizer: torch.optim.Optimizer = torch.optim.SGD(problem.model.parameters(), problem.learning_rate)
    if way == "horovod":
        import horovod.torch as hvd  # noqa: PLC0415 - the plain job must not have it

        hvd.init()
        optimizer = hvd.DistributedOptimizer(optimizer, problem.model.named_parameters())
    for _ in range(_STEPS):
        optimizer.zero_grad()
        torch.autograd.backward(problem.loss(problem.model))
        optimizer.step()
    write_used_mib(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
