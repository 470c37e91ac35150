"""Training that goes on while workers come and go.

::

    @hvd.elastic.run
    def train(state):
        for state.epoch in range(state.epoch, epochs):
            for batch in loader:
                ...
                state.commit()

    train(hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=0))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from horovod._core.elastic.world import World
from horovod.common.elastic import ObjectState, State, run_fn
from horovod.torch.mpi_ops import init, shutdown

from .sampler import ElasticSampler
from .state import TorchState

__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a training function whose first argument is its state; it is called again after a reset.

    Arguments:
        func: its first argument is the state.

    """
    return run_fn(func, World(shutdown, init))
