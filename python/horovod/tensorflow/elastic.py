"""Elastic training with TensorFlow.

::

    @hvd.elastic.run
    def train(state):
        for state.batch in range(state.batch, batches):
            train_one_batch()
            if state.batch % 10 == 0:
                state.commit()

    train(hvd.elastic.TensorFlowKerasState(model, optimizer, batch=0))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from horovod._core.elastic.failures import speaks_of_us
from horovod._core.elastic.shares import ElasticIndices
from horovod._core.elastic.variables import VariablesState, optimizer_variables, own_copy
from horovod._core.elastic.world import World
from horovod._core.errors import HorovodInternalError
from horovod.common.elastic import ObjectState, State, run_fn

from .functions import broadcast_object
from .mpi_ops import init, rank, shutdown
from .util import _executing_eagerly

__all__ = [
    "ElasticIndices",
    "ObjectState",
    "State",
    "TensorFlowKerasState",
    "TensorFlowState",
    "run",
]

_FAILURES = (
    tf.errors.UnknownError,
    tf.errors.FailedPreconditionError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.InternalError,
)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a training function whose first argument is its state; it is called again after a reset.

    Arguments:
        func: its first argument is the state.

    """

    @functools.wraps(func)
    def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except _FAILURES as error:
            if not speaks_of_us(error):
                raise
            raise HorovodInternalError(str(error)) from error

    return run_fn(translated, World(shutdown, init))


def _value_of(variable: Any) -> Any:
    return variable.numpy() if hasattr(variable, "numpy") else variable


class _VariablesState(VariablesState):
    """Variables of TensorFlow: eager ones, or those of a session."""

    def __init__(self, session: Any, **kwargs: Any) -> None:
        super().__init__(bcast_object=broadcast_object, get_rank=rank, **kwargs)
        self._session = session

    def _variables(self) -> list[Any]:
        raise NotImplementedError

    def _read(self) -> list[Any]:
        variables = self._variables()
        if self._session is not None:
            return list(self._session.run(variables))
        return [_value_of(variable) for variable in variables]

    def _write(self, arrays: Sequence[Any]) -> None:
        variables = self._variables()
        if len(variables) != len(arrays):
            message = (
                f"elastic state: this rank has {len(variables)} variables, the rank with the newest commit "
                f"{len(arrays)}; build model and optimizer before the state"
            )
            raise ValueError(message)
        for variable, array in zip(variables, arrays, strict=True):
            if self._session is not None:
                variable.load(array, self._session)
            else:
                variable.assign(own_copy(array))


class TensorFlowState(_VariablesState):
    """The state of variables; default: all global ones.

    Arguments:
        variables: default: all global variables.
        session: that of a graph of TensorFlow 1.

    """

    def __init__(self, variables: Any = None, session: Any = None, **kwargs: Any) -> None:
        """Track the variables, and the keyword arguments as attributes."""
        self.variables = list(variables) if variables is not None else tf.compat.v1.global_variables()
        super().__init__(None if _executing_eagerly() else session or _default_session(), **kwargs)
        self.save()

    def _variables(self) -> list[Any]:
        return self.variables


def _default_session() -> Any:
    return tf.compat.v1.get_default_session()


class TensorFlowKerasState(_VariablesState):
    """The state of a model of Keras on TensorFlow, and of its optimizer.

    Arguments:
        model: must be built.
        optimizer: default: that of the model.
        backend: the Keras module, for graphs of TensorFlow 1.

    """

    def __init__(self, model: Any, optimizer: Any = None, backend: Any = None, **kwargs: Any) -> None:
        """Track a model that is built, its optimizer, and the keyword arguments as attributes."""
        if not _is_built(model):
            message = "Model must be built first. Run `model.build(input_shape)`."
            raise ValueError(message)
        self.model = model
        self.optimizer = optimizer or getattr(model, "optimizer", None)
        _build_optimizer(self.optimizer, model)
        session = None
        if backend is not None and not _executing_eagerly():
            session = backend.get_session()
        super().__init__(session, **kwargs)
        self.save()

    def _variables(self) -> list[Any]:
        return [*self.model.variables, *optimizer_variables(self.optimizer)]


def _is_built(model: Any) -> bool:
    return bool(getattr(model, "built", True))


def _build_optimizer(optimizer: Any, model: Any) -> None:
    """Make its variables now, so that a newcomer has those that the others have."""
    build = getattr(optimizer, "build", None)
    if build is not None and not getattr(optimizer, "built", getattr(optimizer, "_built", False)):
        build(model.trainable_variables)
