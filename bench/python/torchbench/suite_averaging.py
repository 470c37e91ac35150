"""Averaging gradients that are all there: no backward, nothing to hide behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from benchlib.cases import best_of, make_case, taken
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.parameters import BERT_BASE, RESNET50, VGG16, ParameterList
from benchlib.readings import CaseReadings
from benchlib.world import World

import horovod.torch as hvd

from .averaging_peers import asynchronously, in_buckets, make_buckets, one_by_one
from .gloo import start_gloo

_OURS: Final = ("optimizer.synchronize", "hvd.grouped_allreduce_")
_PEERS: Final = ("gloo one by one", "gloo async", "gloo buckets")


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on each list of parameters."""
    start_gloo(world)
    contest = Contest(world)
    return [_measure_list(world, contest, one, effort) for one in (RESNET50, VGG16, BERT_BASE)]


def _measure_list(world: World, contest: Contest, parameters: ParameterList, effort: Effort) -> CaseReadings:
    gradients = [torch.zeros(shape) for shape in parameters.shapes]
    contestants = _contestants(world, gradients)
    for contestant in contestants:
        _check(world, contestant, gradients)
    name = f"np={world.size} averaging: {parameters.name}"
    rounds = contest.measure(name, contestants, effort)
    columns = [
        *(taken("ours", one) for one in _OURS),
        best_of("peer", _PEERS, "gloo best"),
        *(taken("peer", one) for one in _PEERS),
    ]
    return make_case(name, "ms", world.size, rounds, columns)


def _contestants(world: World, gradients: list[torch.Tensor]) -> list[Contestant]:
    buckets = make_buckets(gradients)
    optimizer = _optimizer_of(gradients)
    once: dict[str, Callable[[], object]] = {
        "optimizer.synchronize": optimizer.synchronize,  # type: ignore[attr-defined]  # of the wrapper
        "hvd.grouped_allreduce_": lambda: hvd.grouped_allreduce_(gradients, name="averaging"),
        "gloo one by one": lambda: one_by_one(gradients, world.size),
        "gloo async": lambda: asynchronously(gradients, world.size),
        "gloo buckets": lambda: in_buckets(buckets, world.size),
    }
    return [Contestant(name, _repeated(call)) for name, call in once.items()]


def _optimizer_of(gradients: list[torch.Tensor]) -> torch.optim.Optimizer:
    """Return an optimizer that finds the gradients in place, as if backward had just ended."""
    parameters = [torch.nn.Parameter(torch.empty_like(gradient)) for gradient in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    wrapped: torch.optim.Optimizer = hvd.DistributedOptimizer(torch.optim.SGD(parameters, 0.1))
    return wrapped


def _repeated(call: Callable[[], object]) -> Callable[[int], None]:
    def run(operations: int) -> None:
        for _ in range(operations):
            call()

    return run


def _check(world: World, contestant: Contestant, gradients: list[torch.Tensor]) -> None:
    """Twice: first an operation is agreed on, the second time takes the path that is measured."""
    expected = (world.size + 1) / 2
    for _ in range(2):
        for gradient in gradients:
            gradient.fill_(world.rank + 1)
        contestant.run(1)
        for index, gradient in enumerate(gradients):
            if not bool((gradient == expected).all()):
                message = f"{contestant.name}: gradient {index} is not {expected} everywhere"
                raise AssertionError(message)
