"""The ways to train that compete: alone, meeting at a barrier, Horovod, DDP on a backend."""

from __future__ import annotations

import abc
from collections.abc import Callable

import torch
import torch.distributed as dist
from benchlib.contest import Contestant
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import horovod.torch as hvd

from .problems import Problem

MakeOptimizer = Callable[[nn.Module, float], torch.optim.Optimizer]


def sgd(model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """Make the plainest optimizer: one pass over the parameters, no state."""
    return torch.optim.SGD(model.parameters(), learning_rate)


def adam(model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """Make an optimizer with large temporaries."""
    return torch.optim.Adam(model.parameters(), learning_rate, foreach=True)


class Way(abc.ABC):
    """One worker's training loop."""

    name: str

    def __init__(self, problem: Problem, make_optimizer: MakeOptimizer = sgd) -> None:
        """Train a twin of the problem's model."""
        self._problem = problem
        self.model = problem.twin()
        self.optimizer = make_optimizer(self.model, problem.learning_rate)

    def gradients(self) -> None:
        """Run forward and backward until this step's gradients are those of all ranks."""
        self.optimizer.zero_grad()
        torch.autograd.backward(self._problem.loss(self.model))

    def step(self) -> None:
        """Train one step."""
        self.gradients()
        self.optimizer.step()

    def rest(self) -> None:
        """Give the memory of the gradients to whoever runs next."""
        self.optimizer.zero_grad()

    def contestant(self, *, with_update: bool) -> Contestant:
        """Compete, with whole steps or up to the gradients."""
        once = self.step if with_update else self.gradients

        def run(operations: int) -> None:
            for _ in range(operations):
                once()

        return Contestant(self.name, run, self.rest)


class Alone(Way):
    """Workers that know nothing of each other."""

    name = "alone"


class BarrierOnly(Way):
    """Workers that only meet at a barrier between backward and update."""

    name = "barrier only"

    def gradients(self) -> None:
        """Meet where the others would communicate."""
        super().gradients()
        hvd.barrier()


class Horovod(Way):
    """hvd.DistributedOptimizer as users have it, with its defaults."""

    name = "horovod"

    def __init__(self, problem: Problem, make_optimizer: MakeOptimizer = sgd) -> None:
        """Wrap the optimizer."""
        super().__init__(problem, make_optimizer)
        self.optimizer = hvd.DistributedOptimizer(
            self.optimizer, named_parameters=self.model.named_parameters()
        )

    def gradients(self) -> None:
        """Wait for the gradients as step() would."""
        super().gradients()
        self.optimizer.synchronize()  # type: ignore[attr-defined]  # made by DistributedOptimizer

    def step(self) -> None:
        """Leave the waiting to the optimizer."""
        super().gradients()
        self.optimizer.step()


class Ddp(Way):
    """Unchanged DistributedDataParallel with bucket views, on the backend of a group."""

    def __init__(self, problem: Problem, backend: str, group: dist.ProcessGroup) -> None:
        """Wrap the model; twins are equal on all ranks and need no broadcast."""
        super().__init__(problem)
        self.name = f"DDP {backend}"
        self.model = DistributedDataParallel(
            self.model, process_group=group, gradient_as_bucket_view=True, init_sync=False
        )
