"""What communication adds to forward and backward of workers that know nothing of each other."""

from __future__ import annotations

import torch.distributed as dist
from benchlib.cases import added, make_case
from benchlib.contest import Contest
from benchlib.effort import Effort
from benchlib.parameters import BERT_BASE, RESNET50, VGG16, ParameterList
from benchlib.readings import CaseReadings
from benchlib.world import World

from .agreement import check_agreement
from .gloo import start_gloo, start_horovod_backend
from .problems import cheap
from .ways import Alone, Ddp, Horovod, Way


class _Exposed:
    def __init__(self, world: World, effort: Effort) -> None:
        self._world = world
        self._effort = effort
        self._gloo = start_gloo(world)
        self._contest = Contest(world)

    def measure(self, parameters: ParameterList, backend: dist.ProcessGroup | None = None) -> CaseReadings:
        """Compare on one list; with a group on our backend also DDP on that."""
        problem = cheap(parameters, self._world.rank)
        ours: list[Way] = [Horovod(problem)]
        if backend is not None:
            ours.append(Ddp(problem, "horovod", backend))
        alone, peer = Alone(problem), Ddp(problem, "gloo", self._gloo)
        check_agreement([peer, *ours])
        name = f"np={self._world.size} exposed: {parameters.name}"
        rounds = self._contest.measure(
            name,
            [way.contestant(with_update=False) for way in (alone, *ours, peer)],
            self._effort,
        )
        columns = [
            *(added("ours", way.name, alone.name) for way in ours),
            added("peer", peer.name, alone.name),
        ]
        return make_case(name, "ms", self._world.size, rounds, columns)


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on each list of parameters."""
    exposed = _Exposed(world, effort)
    return [
        exposed.measure(RESNET50, start_horovod_backend()),
        exposed.measure(VGG16),
        exposed.measure(BERT_BASE),
    ]
