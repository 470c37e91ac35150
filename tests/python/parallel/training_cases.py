"""A small model, data that every rank knows, and training on all of it or on one rank's share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

import horovod.torch as hvd

ROWS_PER_RANK = 4
FEATURES = 6
CLASSES = 3

Batch = tuple[Tensor, Tensor]


def make_model(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """The same small network on every rank."""
    torch.manual_seed(7)
    return nn.Sequential(
        nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, CLASSES)
    ).to(dtype)


def make_batches(count: int, dtype: torch.dtype = torch.float32) -> list[Batch]:
    """Batches for all ranks together; the same on every rank."""
    generator = torch.Generator().manual_seed(11)
    rows = ROWS_PER_RANK * hvd.size()
    return [
        (
            torch.randn(rows, FEATURES, generator=generator).to(dtype),
            torch.randn(rows, CLASSES, generator=generator).to(dtype),
        )
        for _ in range(count)
    ]


def share(batch: Batch, rank: int | None = None) -> Batch:
    """The rows of one rank, by default of this one."""
    rank = hvd.rank() if rank is None else rank
    rows = slice(rank * ROWS_PER_RANK, (rank + 1) * ROWS_PER_RANK)
    return batch[0][rows], batch[1][rows]


def loss_of(model: nn.Module, batch: Batch) -> Tensor:
    """Mean squared error: the mean over ranks of equal shares is that of the whole batch."""
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def train(model: nn.Module, optimizer: Any, batches: Iterable[Batch]) -> None:
    """Ordinary training, one step per batch."""
    for batch in batches:
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()


def train_distributed(
    make_optimizer: Callable[[Any], Any], batches: list[Batch], **options: Any
) -> nn.Module:
    """Train on this rank's shares with a DistributedOptimizer."""
    model = make_model(batches[0][0].dtype)
    optimizer = hvd.DistributedOptimizer(
        make_optimizer(model.parameters()), named_parameters=model.named_parameters(), **options
    )
    train(model, optimizer, [share(batch) for batch in batches])
    return model


def train_alone(make_optimizer: Callable[[Any], Any], batches: list[Batch]) -> nn.Module:
    """Train on the whole batches, as one process would."""
    model = make_model(batches[0][0].dtype)
    train(model, make_optimizer(model.parameters()), batches)
    return model


def sgd(parameters: Any) -> torch.optim.Optimizer:
    """An optimizer with state."""
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def assert_same_parameters(
    model: nn.Module, expected: nn.Module, *, atol: float = 1e-6, rtol: float = 1e-5
) -> None:
    """Compare two models within float tolerance."""
    for (name, got), wanted in zip(model.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(got, wanted, atol=atol, rtol=rtol, msg=lambda text, n=name: f"{n}: {text}")


def assert_equal_on_all_ranks(model: nn.Module) -> None:
    """Every rank holds the same bits."""
    for name, parameter in model.named_parameters():
        first = hvd.broadcast(parameter.detach(), root_rank=0, name=f"same.{name}")
        assert torch.equal(first, parameter.detach()), name


def copy_of(model: nn.Module) -> nn.Module:
    """A model with the same parameters and no hooks."""
    return copy.deepcopy(model)
