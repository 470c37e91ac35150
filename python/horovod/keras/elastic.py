"""Elastic training: a model whose workers come and go.

::

    @hvd.elastic.run
    def train(state):
        model.fit(
            data,
            epochs=epochs - state.epoch,
            callbacks=[
                hvd.elastic.UpdateEpochStateCallback(state),
                hvd.elastic.UpdateBatchStateCallback(state),
                hvd.elastic.CommitStateCallback(state),
            ],
        )

    train(hvd.elastic.KerasState(model, batch=0, epoch=0))
"""

from __future__ import annotations

from typing import Any

from horovod._core.elastic.shares import ElasticIndices
from horovod._keras import elastic as _impl
from horovod._keras.elastic import run

from ._backend import backend as _backend
from ._backend import keras


class KerasState(_impl.KerasStateImpl):
    """The state of a model and of its optimizer, and any values given by name.

    Arguments:
        model: must be built.
        optimizer: default: that of the model.

    """

    def __init__(self, model: Any, optimizer: Any = None, **kwargs: Any) -> None:
        """Track a model that is built; default: the optimizer that it was compiled with."""
        super().__init__(_backend, model, optimizer, **kwargs)


class CommitStateCallback(_impl.CommitStateCallbackImpl, keras.callbacks.Callback):
    """Commits the state every `batches_per_commit` batches, and at the end of an epoch.

    Arguments:
        state: the elastic state.
        batches_per_commit: commit after so many batches; also at the end of each epoch.

    """

    def __init__(self, state: Any, batches_per_commit: int = 1) -> None:
        """Put it after the callbacks that change the state."""
        super().__init__(_backend, state, batches_per_commit)


class UpdateBatchStateCallback(_impl.UpdateBatchStateCallbackImpl, keras.callbacks.Callback):
    """Keeps `state.batch`, the number of the batch that was processed last.

    `params["steps"]` of the callbacks becomes what is left of the epoch, as in the original. `fit` itself
    goes by its data: after a reset it begins the epoch anew. Where every sample shall count once, call `fit`
    for one epoch at a time with the samples that are left of an ElasticIndices.

    Arguments:
        state: the elastic state.

    """

    def __init__(self, state: Any) -> None:
        """Take a state with the attribute batch."""
        super().__init__(_backend, state)


class UpdateEpochStateCallback(_impl.UpdateEpochStateCallbackImpl, keras.callbacks.Callback):
    """Keeps `state.epoch`.

    Arguments:
        state: the elastic state.

    """

    def __init__(self, state: Any) -> None:
        """Take a state with the attribute epoch."""
        super().__init__(_backend, state)


__all__ = [
    "CommitStateCallback",
    "ElasticIndices",
    "KerasState",
    "UpdateBatchStateCallback",
    "UpdateEpochStateCallback",
    "run",
]
