"""Gradients added up over several passes before they are reduced, for graphs and for eager execution.

The two public helpers differ in how they make variables; what happens in a pass is the same. Every
n-th call reduces the sums and starts anew; the others return what has been added so far, and their
apply_gradients changes nothing but the count of iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from horovod._core.gradients import check_backward_passes
from horovod._core.process_sets import ProcessSet, global_process_set

from ._gradient_reduction import GradientOptions, scaled_local_gradient

AllreduceFunction = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


class Aggregation:
    """What both helpers do; subclasses make the variables."""

    counter: Any

    def __init__(
        self,
        backward_passes_per_step: int,
        allreduce_func: AllreduceFunction,
        sparse_as_dense: bool,
        average_aggregated_gradients: bool,
        process_set: ProcessSet = global_process_set,
        scale_local_gradients: bool = True,
    ) -> None:
        """Count passes from 0; `allreduce_func` gets (gradients, variables)."""
        check_backward_passes(backward_passes_per_step)
        self.backward_passes_per_step = backward_passes_per_step
        self.sparse_as_dense = sparse_as_dense
        self.average_aggregated_gradients = average_aggregated_gradients
        self._allreduce = allreduce_func
        self._options = GradientOptions(process_set=process_set, scale_local_gradients=scale_local_gradients)
        self._local: set[Any] = set()
        self.locally_aggregated_grads: list[Any] = []

    def register_local_var(self, var: Any) -> None:
        """Leave the gradient of this variable out of communication."""
        self._local.add(var.ref())

    def _make_variables(self, gradients: Sequence[Any]) -> None:
        raise NotImplementedError

    def _dense(self, gradient: Any) -> Any:
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if self.sparse_as_dense:
            return tf.convert_to_tensor(gradient)
        message = (
            "IndexedSlices are not supported when `backward_passes_per_step` > 1 and "
            "`sparse_as_dense` is False"
        )
        raise ValueError(message)

    def compute_gradients(self, grads: Sequence[Any], vars: Sequence[Any]) -> list[Any]:
        """Add one pass; returns the reduced sums in every n-th call, else the sums so far."""
        dense = [self._dense(gradient) for gradient in grads]
        present = [index for index, gradient in enumerate(dense) if gradient is not None]
        if not self.locally_aggregated_grads:
            self._make_variables([dense[index] for index in present])
        sums = self.locally_aggregated_grads
        added = [total.assign_add(dense[index]) for total, index in zip(sums, present, strict=True)]
        with tf.control_dependencies([*added, self.counter.assign_add(1)]):
            is_last = tf.equal(self.counter.read_value(), self.backward_passes_per_step)
            results = tf.cond(
                is_last,
                lambda: self._finish([vars[index] for index in present]),
                lambda: [total.read_value() for total in sums],
            )
        complete: list[Any] = [None] * len(dense)
        for index, gradient in zip(present, results, strict=True):
            complete[index] = gradient
        return complete

    def _finish(self, variables: Sequence[Any]) -> list[Any]:
        totals = [total.read_value() for total in self.locally_aggregated_grads]
        shared = [i for i, variable in enumerate(variables) if variable.ref() not in self._local]
        results = [scaled_local_gradient(total, self._options) for total in totals]
        reduced = self._allreduce([totals[i] for i in shared], [variables[i] for i in shared])
        for index, gradient in zip(shared, reduced, strict=True):
            results[index] = gradient
        if self.average_aggregated_gradients:
            results = [gradient / self.backward_passes_per_step for gradient in results]
        with tf.control_dependencies(results):
            clears = [total.assign(tf.zeros_like(total)) for total in self.locally_aggregated_grads]
            clears.append(self.counter.assign(0))
        with tf.control_dependencies(clears):
            return [tf.identity(gradient) for gradient in results]

    def apply_gradients(
        self,
        apply_grads_closure: Callable[[], Any],
        optimizer: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Apply in every n-th call; in the others count the iteration."""
        global_step = kwargs.get("global_step", args[1] if len(args) > 1 else None)

        def skip() -> Any:
            if global_step is not None:
                return tf.group(global_step.assign_add(1))
            iterations = getattr(optimizer, "iterations", None)
            return tf.no_op() if iterations is None else tf.group(iterations.assign_add(1))

        def apply() -> Any:
            return tf.group(apply_grads_closure())

        if tf.executing_eagerly():
            return apply_grads_closure() if int(self.counter) == 0 else skip()
        # After compute_gradients the counter is 0 exactly where the sums have been reduced.
        grads = [gradient for gradient, _ in (args[0] if args else kwargs["grads_and_vars"])]
        with tf.control_dependencies([g for g in grads if g is not None]):
            return tf.cond(tf.equal(self.counter.read_value(), 0), apply, skip)
