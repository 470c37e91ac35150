"""What is trained: a model, and the loss of this rank's share of the data."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from benchlib.parameters import ParameterList
from torch import Tensor, nn
from torch.nn import functional

_SEED = 1234


@dataclass(frozen=True, slots=True)
class Problem:
    """All ranks have the same model, each has its own data."""

    name: str
    model: nn.Module
    loss: Callable[[nn.Module], Tensor]
    learning_rate: float

    def twin(self) -> nn.Module:
        """Return a model that shares the memory of the parameters, but neither gradients nor hooks.

        So the ways to train the same model can take turns in one process without crowding it.
        """
        twin = copy.deepcopy(self.model)
        for ours, theirs in zip(self.model.parameters(), twin.parameters(), strict=True):
            theirs.data = ours.data
        return twin


class CheapModel(nn.Module):
    """Makes a gradient for every parameter of a list with next to no arithmetic.

    What remains of a step is memory traffic and communication: the hardest case there is.
    """

    def __init__(self, parameters: ParameterList) -> None:
        """Allocate the parameters."""
        super().__init__()
        # A plain tuple beside the registration: walking a ParameterList takes 3 us per parameter.
        self._weights = tuple(nn.Parameter(torch.zeros(shape)) for shape in parameters.shapes)
        for index, weight in enumerate(self._weights):
            self.register_parameter(f"weight{index}", weight)

    def forward(self, factor: Tensor) -> Tensor:
        """Use each parameter once; backward reaches them from the last to the first."""
        total = factor.new_zeros(())
        for weight in self._weights:
            total = total + (weight * factor).sum()
        return total


def cheap(parameters: ParameterList, rank: int) -> Problem:
    """Make a cheap model of a list of parameters."""
    factor = torch.tensor(1.0 + rank)
    return Problem(parameters.name, CheapModel(parameters), lambda model: model(factor), learning_rate=1e-6)


def mlp(rank: int) -> Problem:
    """Make a wide one: 5.8 M parameters for little arithmetic."""
    torch.manual_seed(_SEED)
    model = nn.Sequential(
        nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)
    )
    inputs, labels = _images((32, 784), rank)
    return _classifier("MLP 784-2048-2048-10", model, inputs, labels)


def cnn(rank: int) -> Problem:
    """Make a small one: 0.1 M parameters for much arithmetic."""
    torch.manual_seed(_SEED)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    inputs, labels = _images((128, 1, 28, 28), rank)
    return _classifier("CNN", model, inputs, labels)


def transformer(rank: int) -> Problem:
    """Make four blocks of width 256: 3.2 M parameters."""
    torch.manual_seed(_SEED)
    block = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(block, 4, enable_nested_tensor=False)
    inputs = torch.randn((8, 64, 256), generator=torch.Generator().manual_seed(rank))
    return Problem("transformer 4x256", model, lambda module: module(inputs).square().mean(), 1e-4)


def _images(shape: tuple[int, ...], rank: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rank)
    inputs = torch.randn(shape, generator=generator)
    return inputs, torch.randint(0, 10, shape[:1], generator=generator)


def _classifier(name: str, model: nn.Module, inputs: Tensor, labels: Tensor) -> Problem:
    return Problem(name, model, lambda module: functional.cross_entropy(module(inputs), labels), 1e-3)
