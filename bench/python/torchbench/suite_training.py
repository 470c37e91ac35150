"""Whole training steps: the share of the speed without communication, and the speed of DDP."""

from __future__ import annotations

import torch.distributed as dist
from benchlib.cases import make_case, taken
from benchlib.contest import Contest
from benchlib.contest import Round as ContestRound
from benchlib.effort import Effort
from benchlib.parameters import RESNET50
from benchlib.readings import CaseReadings
from benchlib.world import World

from .agreement import check_agreement
from .gloo import start_gloo
from .problems import Problem, cheap, cnn, mlp, transformer
from .ways import BarrierOnly, Ddp, Horovod


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on four models."""
    gloo = start_gloo(world)
    contest = Contest(world)
    problems = [
        cheap(RESNET50, world.rank),
        *(make(world.rank) for make in (mlp, cnn, transformer)),
    ]
    np = world.size
    measured = [(problem.name, _rounds(contest, problem, gloo, effort, np)) for problem in problems]
    shares = [
        make_case(
            f"np={np} share: {name}", "ms", np, rounds,
            [taken("ours", Horovod.name), taken("limit", BarrierOnly.name)],
        )
        for name, rounds in measured
    ]  # fmt: skip
    throughputs = [
        make_case(
            f"np={np} throughput: {name}", "ms", np, rounds,
            [taken("ours", Horovod.name), taken("peer", "DDP gloo")],
        )
        for name, rounds in measured
    ]  # fmt: skip
    return shares + throughputs


def _rounds(
    contest: Contest, problem: Problem, gloo: dist.ProcessGroup, effort: Effort, np: int
) -> list[ContestRound]:
    horovod, ddp = Horovod(problem), Ddp(problem, "gloo", gloo)
    check_agreement([ddp, horovod])
    ways = (BarrierOnly(problem), horovod, ddp)
    contestants = [way.contestant(with_update=True) for way in ways]
    return list(contest.measure(f"np={np} training: {problem.name}", contestants, effort))
