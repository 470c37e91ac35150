"""Local gradient aggregation in graphs of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from horovod._core.process_sets import ProcessSet, global_process_set

from ._aggregation import Aggregation, AllreduceFunction


class LocalGradientAggregationHelper(Aggregation):
    """Adds up gradients in local variables of the graph."""

    _OPTIMIZER_TYPE_KERAS = "optimizer_type_keras"
    _OPTIMIZER_TYPE_LEGACY = "optimizer_type_legacy"

    def __init__(
        self,
        backward_passes_per_step: int,
        allreduce_func: AllreduceFunction,
        sparse_as_dense: bool,
        average_aggregated_gradients: bool,
        rank: int,
        optimizer_type: str,
        process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True,
        name: str = "",
    ) -> None:
        """Keep what names the variables."""
        super().__init__(
            backward_passes_per_step,
            allreduce_func,
            sparse_as_dense,
            average_aggregated_gradients,
            process_set,
            scale_local_gradients,
        )
        self.optimizer_type = optimizer_type
        self._scope = f"aggregation_variables_{name}{rank}"

    def _make_variables(self, gradients: Sequence[Any]) -> None:
        collections = [tf.compat.v1.GraphKeys.LOCAL_VARIABLES, "aggregating_collection"]
        with tf.compat.v1.variable_scope(self._scope, reuse=tf.compat.v1.AUTO_REUSE):
            self.counter = tf.compat.v1.get_variable(
                "aggregation_counter",
                shape=(),
                dtype=tf.int32,
                trainable=False,
                initializer=tf.compat.v1.zeros_initializer(),
                collections=collections[:1],
                use_resource=True,
            )
            self.locally_aggregated_grads = [
                tf.compat.v1.get_variable(
                    f"aggregated_gradient_{index}",
                    shape=gradient.shape,
                    dtype=gradient.dtype,
                    trainable=False,
                    initializer=tf.compat.v1.zeros_initializer(),
                    collections=collections,
                    use_resource=True,
                )
                for index, gradient in enumerate(gradients)
            ]
