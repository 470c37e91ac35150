"""Local gradient aggregation in TensorFlow 2: eager execution and tf.function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from horovod._core.process_sets import ProcessSet, global_process_set

from ._aggregation import Aggregation, AllreduceFunction


class LocalGradientAggregationHelperEager(Aggregation):
    """Adds up gradients in variables of its own."""

    def __init__(
        self,
        backward_passes_per_step: int,
        allreduce_func: AllreduceFunction,
        sparse_as_dense: bool,
        average_aggregated_gradients: bool,
        process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True,
    ) -> None:
        """Start with an empty count."""
        super().__init__(
            backward_passes_per_step,
            allreduce_func,
            sparse_as_dense,
            average_aggregated_gradients,
            process_set,
            scale_local_gradients,
        )
        self.counter = tf.Variable(0, dtype=tf.int32, trainable=False, name="aggregation_counter")

    def _make_variables(self, gradients: Sequence[Any]) -> None:
        # A function that is being traced must not own them: the next trace uses the same ones.
        with tf.init_scope():
            self.locally_aggregated_grads = [
                tf.Variable(tf.zeros(gradient.shape, gradient.dtype), trainable=False)
                for gradient in gradients
            ]
