"""Elastic training with Keras: the state of a model on any backend, and the callbacks that keep it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from horovod._core.basics import basics
from horovod._core.elastic.failures import is_bare_status, speaks_of_us
from horovod._core.elastic.variables import VariablesState, optimizer_variables, own_copy
from horovod._core.elastic.world import World
from horovod._core.errors import HorovodInternalError
from horovod._core.objects import broadcast_object
from horovod.common.elastic import run_fn

# What the frameworks make of a failed operation: an error of their own with our text in it.
_FRAMEWORK_FAILURES = {"UnknownError", "FailedPreconditionError", "JaxRuntimeError", "XlaRuntimeError"}


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a training function whose first argument is its state; it is called again after a reset.

    Arguments:
        func: its first argument is the state.

    """

    @functools.wraps(func)
    def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except Exception as error:
            is_of_framework = type(error).__name__ in _FRAMEWORK_FAILURES or is_bare_status(error)
            if is_of_framework and speaks_of_us(error):
                raise HorovodInternalError(str(error)) from error
            raise

    return run_fn(translated, World(basics.shutdown, basics.init))


class KerasStateImpl(VariablesState):
    """The variables of a model and of its optimizer."""

    def __init__(self, backend: Any, model: Any, optimizer: Any = None, **kwargs: Any) -> None:
        """Track a model that is built; `backend` is the module of horovod._keras.backends."""
        if not getattr(model, "built", True):
            message = "Model must be built first. Run `model.build(input_shape)`."
            raise ValueError(message)
        self.model = model
        self.optimizer = optimizer or getattr(model, "optimizer", None)
        self._backend = backend
        self._build_optimizer()
        super().__init__(bcast_object=broadcast_object, get_rank=basics.rank, **kwargs)
        self.save()

    def _build_optimizer(self) -> None:
        """Make its variables now, so that a newcomer has those that the others have."""
        optimizer = self.optimizer
        build = getattr(optimizer, "build", None)
        if build is not None and not getattr(optimizer, "built", getattr(optimizer, "_built", True)):
            build(self.model.trainable_variables)

    def _variables(self) -> list[Any]:
        return [*self.model.variables, *optimizer_variables(self.optimizer)]

    def _read(self) -> list[Any]:
        # The trainer of JAX keeps the values to itself during an epoch.
        if hasattr(self.model, "jax_state_sync") and getattr(self.model, "_jax_state", None):
            self.model.jax_state_sync()
        if self._backend.in_graph():
            return list(self._backend.session().run(self._variables()))
        return [_array(variable) for variable in self._variables()]

    def _write(self, arrays: Sequence[Any]) -> None:
        variables = self._variables()
        if len(variables) != len(arrays):
            message = (
                f"elastic state: this rank has {len(variables)} variables, the rank with the newest commit "
                f"{len(arrays)}; build model and optimizer before the state"
            )
            raise ValueError(message)
        for variable, array in zip(variables, arrays, strict=True):
            if self._backend.in_graph():
                variable.load(array, self._backend.session())
            else:
                variable.assign(own_copy(array))


def _array(variable: Any) -> Any:
    value = getattr(variable, "value", variable)
    value = value() if callable(value) else value
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    return np.asarray(value)


class CommitStateCallbackImpl:
    """Commits every few batches, and at the end of an epoch."""

    def __init__(self, backend: Any, state: Any, batches_per_commit: int, *args: Any) -> None:
        super().__init__(*args)
        self.backend = backend
        self.state = state
        self.batches_per_commit = batches_per_commit
        self.batches_remaining = batches_per_commit

    def on_train_begin(self, logs: Any = None) -> None:
        """Count anew: after a reset all ranks must commit at the same batches."""
        del logs
        self.batches_remaining = self.batches_per_commit

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Commit if it is time."""
        del batch, logs
        self.batches_remaining -= 1
        if self.batches_remaining == 0:
            self.batches_remaining = self.batches_per_commit
            self.commit()

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Commit in any case."""
        del epoch, logs
        self.commit()

    def commit(self) -> None:
        """Commit; programs put methods of their own before this one."""
        self.state.commit()


class UpdateBatchStateCallbackImpl:
    """Lets state.batch be the number of the batch that was processed last."""

    def __init__(self, backend: Any, state: Any, *args: Any) -> None:
        super().__init__(*args)
        self.backend = backend
        self.state = state
        self.steps_per_epoch: int | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Forget the number of steps of another world."""
        del logs
        self.steps_per_epoch = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Say how much is left of the epoch; fit itself goes by its data."""
        del epoch, logs
        params = self.params or {}  # type: ignore[attr-defined]
        steps = params.get("steps")
        if steps:
            if self.steps_per_epoch is None:
                self.steps_per_epoch = steps
            params["steps"] = self.steps_per_epoch - self.state.batch

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Remember the batch."""
        del logs
        self.state.batch = batch

    on_train_batch_end = on_batch_end

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Begin with the first batch again."""
        del epoch, logs
        self.state.batch = 0


class UpdateEpochStateCallbackImpl:
    """Lets state.epoch be the number of epochs that are complete."""

    def __init__(self, backend: Any, state: Any, *args: Any) -> None:
        super().__init__(*args)
        self.backend = backend
        self.state = state
        self.initial_epoch = state.epoch

    def on_train_begin(self, logs: Any = None) -> None:
        """Count from where this call of `fit` begins."""
        del logs
        self.initial_epoch = self.state.epoch

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Count an epoch."""
        del logs
        self.state.epoch = self.initial_epoch + epoch + 1
