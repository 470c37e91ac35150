"""Whole training steps: the share of the speed of workers that only meet at a barrier."""

from __future__ import annotations

import tensorflow as tf
from benchlib.cases import make_case, taken
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.readings import CaseReadings
from benchlib.world import World

from .problems import Problem, cnn, mlp, transformer
from .ways import barrier_only, horovod


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on three models."""
    contest = Contest(world)
    return [_share(world, contest, make(world.rank), effort) for make in (cnn, transformer, mlp)]


def _share(world: World, contest: Contest, problem: Problem, effort: Effort) -> CaseReadings:
    ours, limit = horovod(problem), barrier_only(problem, world)
    _check(world, ours, problem)
    name = f"np={world.size} share: {problem.name}"
    rounds = contest.measure(name, [ours, limit], effort)
    return make_case(name, "ms", world.size, rounds, [taken("ours", ours.name), taken("limit", limit.name)])


def _check(world: World, one: Contestant, problem: Problem) -> None:
    """Ranks that start with equal variables and have other data must stay equal, and learn."""
    before = _norm(problem)
    one.run(2)
    after = _norm(problem)
    smallest, largest = -world.largest(-after), world.largest(after)
    if not smallest == largest != before:
        message = (
            f"{one.name} on {problem.name}: expected the same new variables on all ranks,"
            f" got norms from {smallest} to {largest}, before {before}"
        )
        raise AssertionError(message)


def _norm(problem: Problem) -> float:
    values = [tf.cast(tf.convert_to_tensor(variable), tf.float64) for variable in problem.variables]
    return float(tf.linalg.global_norm(values))
