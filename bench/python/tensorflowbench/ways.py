"""The ways to train that compete in one process: alone, meeting at a barrier, Horovod.

Those on one problem train the same variables, so that they can take turns without crowding memory.
"""

from __future__ import annotations

from collections.abc import Callable

from benchlib.contest import Contestant
from benchlib.world import World

import horovod.tensorflow as hvd

from .problems import Problem
from .step import training_step


def alone(problem: Problem) -> Contestant:
    """Let workers know nothing of each other."""
    return contestant("alone", training_step(problem))


def barrier_only(problem: Problem, world: World) -> Contestant:
    """Let workers meet once in every step, by the cheapest means there is."""
    step = training_step(problem)

    def step_and_meet() -> None:
        step()
        world.barrier()

    return contestant("barrier only", step_and_meet)


def horovod(problem: Problem) -> Contestant:
    """Use hvd.DistributedGradientTape as users have it, with its defaults."""
    return contestant("horovod", training_step(problem, hvd.DistributedGradientTape))


def contestant(name: str, step: Callable[[], None]) -> Contestant:
    """Compete with a step."""

    def run(operations: int) -> None:
        for _ in range(operations):
            step()

    return Contestant(name, run)
