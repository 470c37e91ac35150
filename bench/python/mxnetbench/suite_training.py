"""Whole training steps with gluon: the share of the speed of workers that only meet at a barrier."""

from __future__ import annotations

from benchlib.cases import make_case, taken
from benchlib.contest import Contest
from benchlib.effort import Effort
from benchlib.readings import CaseReadings
from benchlib.world import World

from .checks import check_training
from .problems import Cnn
from .ways import barrier_only, horovod


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on a small convolutional network."""
    problem = Cnn(world.rank)
    ours, limit = horovod(problem), barrier_only(Cnn(world.rank), world)
    check_training(world, ours, problem)
    name = f"np={world.size} share: {problem.name}"
    rounds = Contest(world).measure(name, [ours, limit], effort)
    return [make_case(name, "ms", world.size, rounds, [taken("ours", ours.name), taken("limit", limit.name)])]
