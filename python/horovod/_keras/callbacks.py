"""What the callbacks do. The front ends put these in front of keras.callbacks.Callback.

`backend` of each is the module of horovod._keras.backends that Keras runs on; tests of other
programs look for the classes ending in Impl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from horovod._core.basics import basics
from horovod._core.codes import AVERAGE
from horovod._core.submit import Reduction

from . import _arrays
from ._options import variable_key


def _bring_state_home(model: Any) -> None:
    """Write what the trainer of JAX keeps during an epoch back to the variables, so that they can be set."""
    if hasattr(model, "jax_state_sync"):
        model.jax_state_sync()


class _CallbackBase:
    def __init__(self, backend: Any, *args: Any, **kwargs: Any) -> None:
        self.backend = backend
        super().__init__(*args, **kwargs)

    def set_model(self, model: Any) -> None:
        """Keep XLA away from the step, which is not made yet: it cannot compile the ops of TensorFlow."""
        if self.backend.__name__.endswith(".tensorflow") and getattr(model, "jit_compile", False):
            model.jit_compile = False
        super().set_model(model)  # type: ignore[misc]


class BroadcastGlobalVariablesCallbackImpl(_CallbackBase):
    """Gives all ranks the variables of the root, once, after the first step."""

    def __init__(
        self, backend: Any, root_rank: int, device: str = "", local_variables: Any = None, *args: Any
    ) -> None:
        super().__init__(backend, *args)
        if local_variables is not None and backend.in_graph():
            message = "local_variables of BroadcastGlobalVariablesCallback: not in graphs of TensorFlow 1"
            raise ValueError(message)
        self.root_rank = root_rank
        self.device = device
        self.broadcast_done = False
        self._local = {variable_key(variable) for variable in _listed(local_variables)}

    def register_local_var(self, var: Any) -> None:
        """Leave this variable as it is on every rank."""
        self._local.add(variable_key(var))

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Broadcast, once, when the first step has made what an optimizer makes there.

        Not before: ranks differ then, where only the root has loaded a checkpoint and with it the
        state of its optimizer, and would wait for one another.
        """
        del batch, logs
        if self.broadcast_done:
            return
        _bring_state_home(self.model)  # type: ignore[attr-defined]
        # In a graph all that programs keep in variables of their own comes along.
        variables = self.backend.global_variables() if self.backend.in_graph() else self._variables()
        self.backend.broadcast_variables(variables, self.root_rank)
        self.broadcast_done = True

    def _variables(self) -> list[Any]:
        model = self.model  # type: ignore[attr-defined]
        variables = list(model.weights)
        optimizer = getattr(model, "optimizer", None)
        if optimizer is not None:
            of = optimizer.variables
            variables += list(of() if callable(of) else of)
        return [variable for variable in variables if variable_key(variable) not in self._local]


def _listed(local_variables: Any) -> list[Any]:
    if local_variables is None:
        return []
    is_one = hasattr(local_variables, "assign") or not isinstance(local_variables, Iterable)
    variables = [local_variables] if is_one else list(local_variables)
    for variable in variables:
        if not hasattr(variable, "assign"):
            message = (
                "local_variables must be a variable or an iterable of variables, "
                f"got {type(variable).__name__}"
            )
            raise ValueError(message)
    return variables


class MetricAverageCallbackImpl(_CallbackBase):
    """Averages the metrics of an epoch over all ranks."""

    def __init__(self, backend: Any, device: str = "", *args: Any) -> None:
        super().__init__(backend, *args)
        self.device = device

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write the averages back, so that later callbacks see them."""
        if logs:
            names = sorted(logs)
            values = [np.asarray(logs[name], np.float64) for name in names]
            # One vector: ranks with another number of metrics get an error, and nobody waits.
            vector = np.concatenate([value.ravel() for value in values])
            label = "allreduce.MetricAverageCallback"
            (averages,) = _arrays.allreduce([vector], [label], Reduction(AVERAGE))
            ends = np.cumsum([value.size for value in values])[:-1]
            for name, value, average in zip(names, values, np.split(averages, ends), strict=True):
                logs[name] = average.reshape(value.shape) if value.ndim else float(average[0])
        super().on_epoch_end(epoch, logs)  # type: ignore[misc]


class LearningRateScheduleCallbackImpl(_CallbackBase):
    """Multiplies the initial learning rate by a factor that depends on the epoch."""

    def __init__(
        self,
        backend: Any,
        initial_lr: float,
        multiplier: Any,
        start_epoch: int = 0,
        end_epoch: int | None = None,
        staircase: bool = True,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        *args: Any,
    ) -> None:
        super().__init__(backend, *args)
        if initial_lr is None:
            message = "Parameter `initial_lr` is required"
            raise ValueError(message)
        self.initial_lr = initial_lr
        self.start_epoch = start_epoch
        self.end_epoch = end_epoch
        self.staircase = staircase
        self.momentum_correction = momentum_correction
        self.restore_momentum: Any = None
        self.steps_per_epoch = steps_per_epoch
        self.current_epoch: int | None = None
        self.multiplier: Callable[[float], float]
        if callable(multiplier):
            self.multiplier = multiplier
        else:
            self.staircase = True
            self.multiplier = lambda epoch: multiplier ** (epoch - self.start_epoch)

    def _steps(self) -> int:
        params = self.params  # type: ignore[attr-defined]
        if params.get("steps"):
            return int(params["steps"])
        if params.get("samples") and params.get("batch_size"):
            return int(params["samples"]) // int(params["batch_size"])
        message = (
            "Could not autodetect the number of steps per epoch. Please specify the steps_per_epoch "
            f"parameter to the {type(self).__name__}() or upgrade to the latest version of Keras."
        )
        raise ValueError(message)

    def _optimizer(self) -> Any:
        return self.model.optimizer  # type: ignore[attr-defined]

    def _learning_rate(self) -> float:
        return float(self.backend.read_variable(self._optimizer().learning_rate))

    def _adjust(self, epoch: float) -> None:
        _bring_state_home(self.model)  # type: ignore[attr-defined]
        optimizer = self._optimizer()
        old = self._learning_rate()
        new = self.initial_lr * self.multiplier(epoch)
        if hasattr(optimizer.learning_rate, "assign"):
            self.backend.write_variable(optimizer.learning_rate, new)
        else:
            optimizer.learning_rate = new
        momentum: Any = getattr(optimizer, "momentum", None)
        # Only a momentum that is a variable can change while a step is compiled.
        if self.momentum_correction and old and hasattr(momentum, "assign"):
            self.restore_momentum = self.backend.read_variable(momentum)
            self.backend.write_variable(momentum, self.restore_momentum * new / old)

    def on_train_begin(self, logs: Any = None) -> None:
        """Find the number of steps where the rate changes in each of them."""
        del logs
        if not self.staircase and not self.steps_per_epoch:
            self.steps_per_epoch = self._steps()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Remember the epoch."""
        del logs
        self.current_epoch = epoch

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Set the rate where it is this callback's turn."""
        del logs
        epoch = self.current_epoch
        if epoch is None or epoch < self.start_epoch:
            return
        if self.end_epoch is not None and epoch >= self.end_epoch:
            return
        if self.staircase and batch == 0:
            self._adjust(epoch)
        elif not self.staircase:
            self._adjust(epoch + float(batch) / (self.steps_per_epoch or 1))

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Undo the correction of the momentum."""
        del batch, logs
        if self.restore_momentum is not None:
            self.backend.write_variable(self._optimizer().momentum, self.restore_momentum)
            self.restore_momentum = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Put the rate into the logs."""
        del epoch
        if logs is not None:
            _bring_state_home(self.model)  # type: ignore[attr-defined]
            logs["lr"] = self._learning_rate()


class LearningRateWarmupCallbackImpl(LearningRateScheduleCallbackImpl):
    """Raises the rate from that of one rank to that of all, over some epochs."""

    def __init__(
        self,
        backend: Any,
        initial_lr: float,
        warmup_epochs: int = 5,
        momentum_correction: bool = True,
        steps_per_epoch: int | None = None,
        verbose: int = 0,
        *args: Any,
    ) -> None:
        def multiplier(epoch: float) -> float:
            # At the end of an epoch, not at its begin, the factor is that of the epoch.
            reached = epoch + 1.0 / (self.steps_per_epoch or 1)
            size = basics.size()
            return 1.0 / size * (reached * (size - 1) / warmup_epochs + 1)

        super().__init__(
            backend,
            initial_lr,
            multiplier,
            0,
            warmup_epochs,
            False,
            momentum_correction,
            steps_per_epoch,
            *args,
        )
        self.verbose = verbose

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Say on rank 0 when the warm-up is over."""
        super().on_epoch_end(epoch, logs)
        if epoch == (self.end_epoch or 0) - 1 and self.verbose > 0 and basics.rank() == 0:
            rate = self._learning_rate()
            # Where Keras itself writes what `verbose` asks for; programs look for this line there.
            print(f"\nEpoch {epoch + 1}: finished gradual learning rate warmup to {rate:g}.")  # noqa: T201
