"""What the gradients of ResNet-50 add to a training step of workers that know nothing of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import tensorflow as tf
from benchlib.cases import added, make_case
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.parameters import RESNET50
from benchlib.readings import CaseReadings
from benchlib.world import World

from .problems import cheap, slope
from .strategy import StrategyTraining, ring, start_strategy
from .ways import alone, contestant, horovod

_PACK_BYTES: Final = 25 << 20
_TOLERANCE: Final = 1e-4


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on the list of ResNet-50, with the strategy's default and in packs."""
    strategy = start_strategy(world)
    problem = cheap(RESNET50, world.rank)
    theirs = StrategyTraining(strategy, RESNET50, problem.learning_rate)
    ours = horovod(problem)
    peers = [
        contestant("MWMS ring", theirs.step(problem.data, ring())),
        contestant("MWMS ring, 25 MiB packs", theirs.step(problem.data, ring(_PACK_BYTES))),
    ]
    for one, variables in ((ours, problem.variables), *((peer, theirs.variables) for peer in peers)):
        _check(world, one, variables, problem.learning_rate)
    base = alone(problem)
    name = f"np={world.size} sync: {RESNET50.name}"
    rounds = Contest(world).measure(name, [base, ours, *peers], effort)
    columns = [
        added("ours", ours.name, base.name),
        *(added("peer", peer.name, base.name) for peer in peers),
    ]
    return [make_case(name, "ms", world.size, rounds, columns)]


def _check(world: World, one: Contestant, variables: Sequence[Any], learning_rate: float) -> None:
    """Twice: all variables must have moved by the average of all ranks' gradients."""
    average = (world.size + 1) / 2
    for _ in range(2):
        before = [tf.identity(variable) for variable in variables]
        one.run(1)
        for index, (old, new) in enumerate(zip(before, variables, strict=True)):
            expected = -learning_rate * average * slope(index)
            error = float(tf.reduce_max(tf.abs((new - old) / expected - 1.0)))
            if not error < _TOLERANCE:
                message = f"{one.name}, variable {index}: the step is off by {error:.2g} of {expected:.3g}"
                raise AssertionError(message)
