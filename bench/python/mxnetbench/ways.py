"""Who trains how."""

from __future__ import annotations

from typing import Any, Final

from benchlib.contest import Contestant
from benchlib.world import World
from mxnet import gluon

import horovod.mxnet as hvd

from .problems import Cnn

_RATE: Final = {"learning_rate": 0.01}


def horovod(problem: Cnn) -> Contestant:
    """Gradients averaged by Horovod."""
    trainer = hvd.DistributedTrainer(problem.net.collect_params(), "sgd", _RATE)
    return Contestant("horovod", problem.stepper(trainer))


class _MeetingTrainer(gluon.Trainer):
    """Exchanges nothing, but begins each update together: what a slow rank costs is no communication."""

    def __init__(self, params: Any, world: World) -> None:
        super().__init__(params, "sgd", _RATE, kvstore=None)
        self._world = world
        self._gradients = [one.list_grad()[0] for one in self._params if one.grad_req != "null"]

    def _allreduce_grads(self) -> None:
        for gradient in self._gradients:
            gradient.wait_to_read()
        self._world.barrier()


def barrier_only(problem: Cnn, world: World) -> Contestant:
    """Workers that only meet."""
    return Contestant("barrier only", problem.stepper(_MeetingTrainer(problem.net.collect_params(), world)))


def dist_sync(problem: Cnn) -> Contestant:
    """MXNet's own parameter servers."""
    trainer = gluon.Trainer(problem.net.collect_params(), "sgd", _RATE, kvstore="dist_sync")
    return Contestant("dist_sync", problem.stepper(trainer))
