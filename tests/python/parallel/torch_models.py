"""A small model, a batch that every rank knows, and training without distribution to compare with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

FEATURES = 12
ROWS_PER_RANK = 4


def make_model() -> nn.Module:
    """The same weights on every rank."""
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(FEATURES, 24), nn.ReLU(), nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 4))


def batch(step: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The whole batch of a step."""
    generator = torch.Generator().manual_seed(100 + step)
    rows = ROWS_PER_RANK * size
    data = torch.randn(rows, FEATURES, generator=generator)
    return data, torch.randn(rows, 4, generator=generator)


def part(step: int, rank: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A rank's rows of it."""
    data, target = batch(step, size)
    rows = slice(rank * ROWS_PER_RANK, (rank + 1) * ROWS_PER_RANK)
    return data[rows], target[rows]


def loss_of(model: nn.Module, data: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean over the rows, so that a mean over ranks is the loss of the whole batch."""
    return nn.functional.mse_loss(model(data), target)


def train_alone(
    size: int,
    make_optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer],
    steps: int = 4,
) -> nn.Module:
    """What one process gets with the whole batch."""
    model = make_model()
    optimizer = make_optimizer(list(model.parameters()))
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, *batch(step, size)).backward()
        optimizer.step()
    return model


def assert_equal_models(actual: nn.Module, expected: nn.Module) -> None:
    """Compare all parameters, within what the order of additions changes."""
    for (name, mine), other in zip(actual.named_parameters(), expected.parameters(), strict=True):
        full = mine.full_tensor() if hasattr(mine, "full_tensor") else mine
        text = f"parameter {name}: "
        torch.testing.assert_close(full.data, other.data, rtol=2e-5, atol=2e-6, msg=lambda m, t=text: t + m)
