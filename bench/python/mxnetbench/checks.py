"""What must hold of a way to train before its speed counts."""

from __future__ import annotations

from benchlib.contest import Contestant
from benchlib.world import World

from .problems import Cnn


def check_training(world: World, one: Contestant, problem: Cnn) -> None:
    """Ranks that start with equal weights and have other data must stay equal, and learn."""
    before = problem.norm()
    one.run(2)
    after = problem.norm()
    smallest, largest = -world.largest(-after), world.largest(after)
    if not smallest == largest != before:
        message = (
            f"{one.name} on {problem.name}: expected the same new weights on all ranks,"
            f" got norms from {smallest} to {largest}, before {before}"
        )
        raise AssertionError(message)
