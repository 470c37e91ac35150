"""What hooks and step() cost by themselves: the parameters of ResNet-50, of one element each.

With one rank (HOROVOD_ELASTIC=1 keeps the hooks) it is the cost of this side alone; with two, each
gradient also travels, and the step is compared with one that has a barrier.
"""

from __future__ import annotations

from typing import Final

from benchlib.cases import added, at_most, make_case
from benchlib.contest import Contest
from benchlib.effort import Effort
from benchlib.parameters import RESNET50, ParameterList
from benchlib.readings import CaseReadings
from benchlib.world import World

from .problems import cheap
from .ways import Alone, BarrierOnly, Horovod

_LIMIT_SECONDS: Final = 1e-3


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare steps with and without Horovod."""
    count = len(RESNET50.shapes)
    problem = cheap(ParameterList("single elements", [(1,)] * count), world.rank)
    base = Alone(problem) if world.size == 1 else BarrierOnly(problem)
    horovod = Horovod(problem)
    name = f"np={world.size} overhead: {count} parameters"
    rounds = Contest(world).measure(
        name, [way.contestant(with_update=True) for way in (base, horovod)], effort
    )
    columns = [
        added("ours", horovod.name, base.name, "hooks and step"),
        at_most(_LIMIT_SECONDS),
    ]
    return [make_case(name, "us", world.size, rounds, columns)]
