"""Callbacks for `fit`."""

from __future__ import annotations

from typing import Any

from horovod._keras import callbacks as _impl

from ._backend import backend as _backend
from ._backend import keras


class BroadcastGlobalVariablesCallback(_impl.BroadcastGlobalVariablesCallbackImpl, keras.callbacks.Callback):
    """Gives all ranks the variables of model and optimizer of the root, once, after the first step.

    Needed wherever ranks begin with random weights, or with a checkpoint that only one of them has read.

    Arguments:
        root_rank: the rank whose value counts; a global rank, also in a process set.
        device: accepted, without effect.
        local_variables: a variable or several that keep the values of their rank.

    """

    def __init__(self, root_rank: int, device: str = "", local_variables: Any = None) -> None:
        """Take the rank that has the values; variables in `local_variables` stay as they are."""
        super().__init__(_backend, root_rank, device, local_variables)


class MetricAverageCallback(_impl.MetricAverageCallbackImpl, keras.callbacks.Callback):
    """Averages the metrics of an epoch over all ranks; put it before callbacks that read them.

    Arguments:
        device: accepted, without effect.

    """

    def __init__(self, device: str = "") -> None:
        """Take a device, of no consequence here."""
        super().__init__(_backend, device)


class LearningRateScheduleCallback(_impl.LearningRateScheduleCallbackImpl, keras.callbacks.Callback):
    """Multiplies the initial learning rate by a factor from `start_epoch` until before `end_epoch`.

    The multiplier is a number, taken to the power of the epochs since the start, or a function of the
    epoch. With staircase=False the rate changes in every step, by a fraction of an epoch.

    Arguments:
        initial_lr: the learning rate that factors multiply.
        multiplier: a number, taken to the power of the epochs since `start_epoch`, or a
            function of the epoch.
        start_epoch: the first epoch in which it acts.
        end_epoch: the first in which it does not act any more; None: to the end.
        staircase: change once per epoch; otherwise in every batch, by the fraction of the
            epoch.
        momentum_correction: scale the momentum by new rate over old rate for one batch.
        steps_per_epoch: batches in an epoch; found from Keras if None.

    Raises:
        ValueError: `initial_lr` is None, or the batches of an epoch are not known when they
            are needed.

    """

    def __init__(
        self,
        initial_lr: float,
        multiplier: Any,
        start_epoch: int = 0,
        end_epoch: int | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        """Find steps_per_epoch from Keras where it is not given."""
        super().__init__(
            _backend,
            initial_lr,
            multiplier,
            start_epoch,
            end_epoch,
            staircase,
            momentum_correction,
            steps_per_epoch,
        )


class LearningRateWarmupCallback(_impl.LearningRateWarmupCallbackImpl, keras.callbacks.Callback):
    """Raises the learning rate from initial_lr / size to initial_lr, over the first epochs.

    Arguments:
        initial_lr: the learning rate that factors multiply.
        warmup_epochs: how many epochs it takes.
        momentum_correction: scale the momentum by new rate over old rate for one batch.
        steps_per_epoch: batches in an epoch; found from Keras if None.
        verbose: 1: say on rank 0 when it is done.

    Raises:
        ValueError: `initial_lr` is None, or the batches of an epoch are not known when they
            are needed.

    """

    def __init__(
        self,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Take the rate to arrive at; verbose: say on rank 0 when that is."""
        super().__init__(_backend, initial_lr, warmup_epochs, momentum_correction, steps_per_epoch, verbose)


class BestModelCheckpoint(keras.callbacks.ModelCheckpoint):
    """Saves the best model of a training; the file is set later, as `filepath`.

    Arguments:
        monitor: the metric that counts.
        verbose: 1: say on rank 0 when it is done.
        mode: "min", "max" or "auto".
        save_freq: "epoch", or a number of batches.

    """

    def __init__(
        self,
        monitor: str = "val_loss",
        verbose: int = 0,
        mode: str = "auto",
        save_freq: str | int = "epoch",
    ) -> None:
        """Save where the monitored metric is better than ever."""
        super().__init__(
            filepath="best_model.keras",
            monitor=monitor,
            verbose=verbose,
            save_best_only=True,
            save_weights_only=False,
            mode=mode,
            save_freq=save_freq,
        )
        self.filepath: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Refuse to train without a place to save to."""
        if self.filepath is None:
            message = "BestModelCheckpoint: set its attribute `filepath` before training"
            raise ValueError(message)
        super().on_train_begin(logs)


__all__ = [
    "BestModelCheckpoint",
    "BroadcastGlobalVariablesCallback",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
]
