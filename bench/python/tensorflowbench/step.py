"""One step of training, as a graph. Knows nothing of Horovod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from .problems import Problem

Wrap = Callable[[Any], Any]


def _unchanged(tape: Any) -> Any:
    return tape


def training_step(problem: Problem, wrap: Wrap = _unchanged) -> Callable[[], None]:
    """Return one step of training as a graph; `wrap` may change the tape."""
    optimizer = keras.optimizers.SGD(problem.learning_rate)
    optimizer.build(problem.variables)

    @tf.function(autograph=False)
    def step(data: Any) -> None:
        with tf.GradientTape() as tape:
            loss = problem.loss(data)
        gradients = wrap(tape).gradient(loss, problem.variables)
        optimizer.apply(gradients)

    return lambda: step(problem.data)
