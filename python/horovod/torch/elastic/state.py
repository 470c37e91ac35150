"""TorchState: models, optimizers, schedulers, samplers and plain values that survive resets."""

from __future__ import annotations

import copy
from typing import Any

import torch

from horovod.common.elastic import ObjectState
from horovod.torch.functions import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from horovod.torch.mpi_ops import rank
from horovod.torch.sharded_optimizer import ShardedOptimizer

from ._handler import StateHandler
from ._sharded_handler import ShardedOptimizerStateHandler
from ._snapshot import Snapshot
from .sampler import ElasticSampler

__all__ = [
    "ModelStateHandler",
    "OptimizerStateHandler",
    "SamplerStateHandler",
    "SchedulerStateHandler",
    "ShardedOptimizerStateHandler",
    "StateHandler",
    "TorchState",
    "get_handler_registry",
    "set_handler_registry",
]


class _SnapshotHandler(StateHandler):
    """Keeps what state_dict() returns."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self._snapshot = Snapshot()
        self.save()

    def save(self) -> None:
        self._snapshot.take(self.value.state_dict())

    def restore(self) -> None:
        # Optimizers and schedulers keep the objects that they are given, and would change the copy.
        self.value.load_state_dict(copy.deepcopy(self._snapshot.state))


class ModelStateHandler(_SnapshotHandler):
    """Keeps a torch.nn.Module."""

    def restore(self) -> None:
        """Copy back into the parameters and buffers."""
        self.value.load_state_dict(self._snapshot.state)

    def sync(self) -> None:
        """Share parameters and buffers; what else a state_dict holds travels as objects."""
        state = self.value.state_dict()
        tensors = {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}
        broadcast_parameters(tensors, root_rank=self.root_rank)
        if len(tensors) != len(state):
            extra = {name: value for name, value in state.items() if name not in tensors}
            shared = broadcast_object(extra, root_rank=self.root_rank, name="elastic.extra_state")
            self.value.load_state_dict({**state, **shared})


class OptimizerStateHandler(_SnapshotHandler):
    """Keeps a torch.optim.Optimizer, wrapped by DistributedOptimizer or not."""

    def sync(self) -> None:
        """Share options and state."""
        broadcast_optimizer_state(self.value, root_rank=self.root_rank)


class SchedulerStateHandler(_SnapshotHandler):
    """Keeps a learning rate scheduler."""

    def sync(self) -> None:
        """Share its state; the learning rates themselves belong to the optimizer."""
        state = broadcast_object(self.value.state_dict(), root_rank=self.root_rank, name="elastic.scheduler")
        self.value.load_state_dict(state)


class SamplerStateHandler(_SnapshotHandler):
    """Keeps an ElasticSampler."""

    def sync(self) -> None:
        """Share how far the epoch has come, and split the rest anew."""
        state = broadcast_object(self.value.state_dict(), root_rank=self.root_rank, name="elastic.sampler")
        self.value.load_state_dict(state)

    def reset(self) -> None:
        """Split the rest of the epoch among the ranks there are now."""
        self.value.reset()


_SCHEDULERS: Any = (
    torch.optim.lr_scheduler.LRScheduler,
    torch.optim.lr_scheduler.ReduceLROnPlateau,  # before torch 2.2 a class of its own
)

HandlerRegistry = list[tuple[Any, type[StateHandler]]]

_handler_registry: HandlerRegistry = [
    (torch.nn.Module, ModelStateHandler),
    (ShardedOptimizer, ShardedOptimizerStateHandler),
    (torch.optim.Optimizer, OptimizerStateHandler),
    (_SCHEDULERS, SchedulerStateHandler),
    (ElasticSampler, SamplerStateHandler),
]


def get_handler_registry() -> HandlerRegistry:
    """Return which class handles which type; the first that fits is taken."""
    return _handler_registry


def set_handler_registry(registry: HandlerRegistry) -> None:
    """Take other classes from now on."""
    global _handler_registry  # noqa: PLW0603 - the public interface is one registry
    _handler_registry = registry


def _find_handler(value: Any) -> StateHandler | None:
    """Make the handler of a value; None: it is kept as a plain object."""
    for kind, handler in _handler_registry:
        if isinstance(value, kind):
            return handler(value)
    return None


class TorchState(ObjectState):
    """The state of a PyTorch training.

    Arguments become attributes. Modules, optimizers, learning rate schedulers and ElasticSamplers are
    kept by handlers, which copy them in memory; all else as ObjectState does.

    Arguments:
        model: must be built.
        optimizer: default: that of the model.

    """

    def __init__(
        self,
        model: torch.nn.Module | None = None,
        optimizer: torch.optim.Optimizer | None = None,
        **kwargs: Any,
    ) -> None:
        """Track the model, the optimizer and the keyword arguments; several of each kind are fine."""
        values = {"model": model, "optimizer": optimizer, **kwargs}
        handlers = {name: _find_handler(value) for name, value in values.items()}
        self._handlers = {name: handler for name, handler in handlers.items() if handler is not None}
        for name, handler in self._handlers.items():
            super().__setattr__(name, handler.value)
        plain = {name: value for name, value in values.items() if name not in self._handlers}
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **plain)

    def save(self) -> None:
        """Copy everything in memory; with a ShardedOptimizer a collective."""
        for sharded in self._sharded():
            sharded.commit = (self._claim.generation, self._claim.commit + 1)
        # Shards first: all ranks have them before any rank has the rest.
        for handler in (*self._sharded(), *self._others()):
            handler.save()
        super().save()

    def restore(self) -> None:
        """Go back to the last commit."""
        for handler in self._handlers.values():
            handler.restore()
        super().restore()

    def sync(self) -> None:
        """Give every rank the state of the newest commit, and keep it as a commit of this rank's."""
        with self._agreement() as agreed:
            if not agreed.is_needed:
                return
            for sharded in self._sharded():
                sharded.commit = agreed.commit_name
            for handler in (*self._others(), *self._sharded()):
                handler.root_rank = agreed.root
                handler.sync()
            received = self._receive_objects(agreed.root)
            for sharded in self._sharded():
                sharded.commit = (agreed.generation, agreed.commit)
                sharded.save()
            # No rank can fail alone from here on: the old copies are replaced as a whole.
            for handler in self._others():
                handler.save()
            self._take_objects(received)

    def sync_if_needed(self) -> None:
        """Sync unless every rank has the same commit; shards must be cut anew in any case."""
        if self._sharded():
            self.sync()
        else:
            super().sync_if_needed()

    def reset(self) -> None:
        """Split data and shards among the ranks there are now."""
        super().reset()
        for handler in self._handlers.values():
            handler.reset()

    def __setattr__(self, name: str, value: Any) -> None:
        """Hand a value that is tracked by a handler to it."""
        handler = self.__dict__.get("_handlers", {}).get(name)
        if handler is not None:
            handler.set_value(value)
        super().__setattr__(name, value)

    def _sharded(self) -> list[ShardedOptimizerStateHandler]:
        return [h for h in self._handlers.values() if isinstance(h, ShardedOptimizerStateHandler)]

    def _others(self) -> list[StateHandler]:
        return [h for h in self._handlers.values() if not isinstance(h, ShardedOptimizerStateHandler)]
