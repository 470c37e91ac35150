"""DistributedOptimizer for optimizers of TensorFlow 1 (tf.compat.v1.train) and of Keras."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from horovod._core.gradients import checked_groups
from horovod._core.process_sets import ProcessSet, global_process_set

from ._gradient_reduction import (
    GradientOptions,
    GradientReducer,
    check_adasum,
    check_predivide,
    scaled_local_gradient,
)
from ._reductions import allreduce
from .compression import Compression
from .gradient_aggregation import LocalGradientAggregationHelper
from .mpi_ops import Adasum, Average, rank
from .util import _executing_eagerly

_LegacyOptimizer: Any = tf.compat.v1.train.Optimizer


class _DistributedOptimizer(_LegacyOptimizer):
    """Computes gradients with another optimizer and reduces them."""

    def __init__(
        self,
        optimizer: Any,
        name: str | None,
        use_locking: bool,
        options: GradientOptions,
        backward_passes_per_step: int,
        average_aggregated_gradients: bool,
    ) -> None:
        name = name or f"Distributed{type(optimizer).__name__}"
        super().__init__(name=name, use_locking=use_locking)
        self._optimizer = optimizer
        self._reducer = GradientReducer(name, options)
        self._local_vars: set[Any] = set()
        self._agg_helper: LocalGradientAggregationHelper | None = None
        if backward_passes_per_step > 1:
            if _executing_eagerly():
                message = (
                    "backward_passes_per_step > 1 is not supported yet for optimizers of tf.compat.v1 in "
                    "eager execution; use a Keras optimizer"
                )
                raise ValueError(message)
            self._agg_helper = LocalGradientAggregationHelper(
                backward_passes_per_step=backward_passes_per_step,
                allreduce_func=self._reducer,
                sparse_as_dense=options.sparse_as_dense,
                average_aggregated_gradients=average_aggregated_gradients,
                rank=rank(),
                optimizer_type=LocalGradientAggregationHelper._OPTIMIZER_TYPE_LEGACY,  # noqa: SLF001
                process_set=options.process_set,
                scale_local_gradients=options.scale_local_gradients,
                name=name,
            )

    def register_local_var(self, var: Any) -> None:
        """Leave the gradient of this variable out of communication."""
        self._local_vars.add(var.ref())
        if self._agg_helper is not None:
            self._agg_helper.register_local_var(var)

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Compute gradients and reduce them: those of all ranks."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        gradients = [gradient for gradient, _ in pairs]
        variables = [variable for _, variable in pairs]
        if self._agg_helper is not None:
            reduced = self._agg_helper.compute_gradients(gradients, variables)
        else:
            reduced = self._reduce(gradients, variables)
        return list(zip(reduced, variables, strict=True))

    def _reduce(self, gradients: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        shared = [i for i, variable in enumerate(variables) if variable.ref() not in self._local_vars]
        results = [scaled_local_gradient(gradient, self._reducer.options) for gradient in gradients]
        reduced = self._reducer([gradients[i] for i in shared], [variables[i] for i in shared])
        for index, gradient in zip(shared, reduced, strict=True):
            results[index] = gradient
        return results

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """Apply gradients that compute_gradients returned."""
        pairs = list(grads_and_vars)

        def apply() -> Any:
            return self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)

        if self._agg_helper is None:
            return apply()
        return self._agg_helper.apply_gradients(apply, self._optimizer, pairs, global_step=global_step)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the wrapped optimizer."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the wrapped optimizer."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the wrapped optimizer."""
        return self._optimizer.variables(*args, **kwargs)


class _DistributedAdasumOptimizer(_LegacyOptimizer):
    """Combines what a step of another optimizer has changed, instead of gradients.

    Every backward_passes_per_step-th step the changes since the last exchange are combined by Adasum.
    """

    def __init__(
        self,
        optimizer: Any,
        name: str | None,
        use_locking: bool,
        device_dense: str,
        compression: Any,
        backward_passes_per_step: int,
    ) -> None:
        super().__init__(name=name or f"DistributedDelta{type(optimizer).__name__}", use_locking=use_locking)
        self._optimizer = optimizer
        self._device_dense = device_dense
        self._compression = compression
        self._passes = backward_passes_per_step

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Compute local gradients."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """Apply local gradients, and combine the changes where it is time."""
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars]
        variables = [variable for gradient, variable in pairs if gradient is not None]
        with tf.compat.v1.variable_scope(self.get_name(), reuse=tf.compat.v1.AUTO_REUSE):
            step = tf.compat.v1.get_variable(
                "step_count",
                shape=(),
                dtype=tf.int32,
                trainable=False,
                initializer=tf.compat.v1.zeros_initializer(),
            )
        starts = [
            self._get_or_make_slot(variable, _initial_value(variable), "delta_start", self.get_name())
            for variable in variables
        ]
        applied = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        with tf.control_dependencies([applied]):
            count = tf.compat.v1.assign_add(step, 1)
        with tf.control_dependencies([count]):
            return tf.cond(
                tf.equal(count % self._passes, 0),
                lambda: self._exchange(variables, starts),
                tf.no_op,
            )

    def _exchange(self, variables: Sequence[Any], starts: Sequence[Any]) -> Any:
        changes = []
        for variable, start in zip(variables, starts, strict=True):
            delta = tf.convert_to_tensor(variable) - tf.convert_to_tensor(start)
            combined = allreduce(
                delta, device_dense=self._device_dense, compression=self._compression, op=Adasum
            )
            with tf.control_dependencies([combined]):
                moved = tf.compat.v1.assign_add(start, combined)
            changes.append(tf.compat.v1.assign(variable, moved))
        return tf.group(*changes)

    def get_slot(self, var: Any, name: str) -> Any:
        """Return a slot of this optimizer (delta_start), or else of the wrapped one."""
        own = super().get_slot(var, name)
        return own if own is not None else self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> Any:
        """Return the names of the slots of both."""
        return sorted({*super().get_slot_names(), *self._optimizer.get_slot_names()})

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the wrapped optimizer."""
        return self._optimizer.variables(*args, **kwargs)


def _initial_value(variable: Any) -> Any:
    """Return the value that a variable begins with, whatever is initialized first."""
    return variable.initial_value if hasattr(variable, "initial_value") else variable.read_value()


def DistributedOptimizer(  # noqa: N802 - name of the public API
    optimizer: Any,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return an optimizer like the given one that steps along the gradients of all ranks.

    Arguments:
        optimizer: computes the update from the combined gradients.
        name: of the optimizer; default "Distributed" and its class.
        use_locking: for optimizers of tf.compat.v1.
        device_dense: where TensorFlow places operations on dense tensors, e.g. "/cpu:0".
        device_sparse: where TensorFlow places operations on tf.IndexedSlices.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        sparse_as_dense: send sparse gradients as dense ones.
        backward_passes_per_step: passes whose gradients are summed locally before they
            travel.
        op: Average, Sum, or with optimizers of tf.compat.v1 Adasum, which combines the
            updates.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        average_aggregated_gradients: divide that local sum by the number of passes.
        num_groups: old name of `groups` as a number.
        groups: a number of groups, or lists of variables, whose gradients travel together.
        process_set: the ranks that take part, all of which must call this.
        scale_local_gradients: divide gradients of local variables, which do not travel, by
            the size of the set, as the others are by an average.

    Raises:
        ValueError: an option that is refused, such as a predivide factor without Average.

    """
    check_predivide(op, gradient_predivide_factor)
    check_adasum(op, average_aggregated_gradients)
    groups = checked_groups(num_groups, groups)
    options = GradientOptions(
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        groups,
        process_set,
        scale_local_gradients,
    )
    if isinstance(optimizer, _LegacyOptimizer):
        if op != Adasum:
            return _DistributedOptimizer(
                optimizer, name, use_locking, options, backward_passes_per_step, average_aggregated_gradients
            )
        if process_set.process_set_id != global_process_set.process_set_id:
            message = f"Adasum of changes works on the global process set, got {process_set}"
            raise NotImplementedError(message)
        return _DistributedAdasumOptimizer(
            optimizer, name, use_locking, device_dense, compression, backward_passes_per_step
        )
    if op == Adasum:
        message = "op == Adasum is not supported yet with Keras optimizers"
        raise ValueError(message)
    from . import keras as hvd_keras  # noqa: PLC0415 - it imports this package

    return hvd_keras.DistributedOptimizer(
        optimizer,
        name=name,
        device_dense=device_dense,
        device_sparse=device_sparse,
        compression=compression,
        sparse_as_dense=sparse_as_dense,
        gradient_predivide_factor=gradient_predivide_factor,
        op=op,
        backward_passes_per_step=backward_passes_per_step,
        average_aggregated_gradients=average_aggregated_gradients,
        groups=groups,
        process_set=process_set,
        scale_local_gradients=scale_local_gradients,
    )
