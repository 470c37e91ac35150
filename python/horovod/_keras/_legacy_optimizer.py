"""Optimizers of tf_keras (Keras 2), old and new ones: both end in apply_gradients."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from horovod.tensorflow._gradient_reduction import GradientOptions, scaled_local_gradient
from horovod.tensorflow.gradient_aggregation_eager import LocalGradientAggregationHelperEager

from ._options import OptimizerOptions, Reducer


class LegacyDistributedMixin:
    """What a distributed optimizer adds to its class."""

    _HAS_AGGREGATE_GRAD = True
    _hvd_options: OptimizerOptions
    _hvd_reducer: Reducer
    _hvd_local: set[Any]
    _agg_helper: LocalGradientAggregationHelperEager | None = None

    def register_local_var(self, var: Any) -> None:
        """Leave the gradient of this variable out of communication."""
        self._hvd_local.add(var.ref())
        if self._agg_helper is not None:
            self._agg_helper.register_local_var(var)

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        """Reduce the gradients, then do what Keras does."""
        pairs = list(grads_and_vars)
        gradients = [gradient for gradient, _ in pairs]
        variables = [variable for _, variable in pairs]
        if self._agg_helper is None:
            reduced = list(zip(self._hvd_reduce(gradients, variables), variables, strict=True))
            return super().apply_gradients(reduced, *args, **kwargs)  # type: ignore[misc]
        with tf.init_scope():
            if hasattr(self, "build") and not getattr(self, "_built", True):
                self.build(variables)
        totals = self._agg_helper.compute_gradients(gradients, variables)
        reduced = list(zip(totals, variables, strict=True))
        return self._agg_helper.apply_gradients(
            lambda: super(LegacyDistributedMixin, self).apply_gradients(  # type: ignore[misc]
                reduced, *args, **kwargs
            ),
            self,
            reduced,
        )

    def _hvd_reduce(self, gradients: list[Any], variables: list[Any]) -> list[Any]:
        options = GradientOptions(
            process_set=self._hvd_options.process_set,
            scale_local_gradients=self._hvd_options.scale_local_gradients,
        )
        shared = [i for i, variable in enumerate(variables) if variable.ref() not in self._hvd_local]
        results = [
            scaled_local_gradient(gradient, options) if index not in shared else gradient
            for index, gradient in enumerate(gradients)
        ]
        reduced = self._hvd_reducer([gradients[i] for i in shared], [variables[i] for i in shared])
        for index, gradient in zip(shared, reduced, strict=True):
            results[index] = gradient
        return results


def distribute(optimizer: Any, options: OptimizerOptions, reducer: Reducer) -> Any:
    """Return an optimizer like the given one that reduces gradients."""
    base = type(optimizer)
    members = {
        "__module__": base.__module__,
        "_hvd_options": options,
        "_hvd_reducer": staticmethod(reducer),
        "_hvd_local": set(),
    }
    if options.backward_passes_per_step > 1:
        members["_agg_helper"] = LocalGradientAggregationHelperEager(
            backward_passes_per_step=options.backward_passes_per_step,
            allreduce_func=reducer,
            sparse_as_dense=options.sparse_as_dense,
            average_aggregated_gradients=options.average_aggregated_gradients,
            process_set=options.process_set,
            scale_local_gradients=options.scale_local_gradients,
        )
    kind: Any = type(base.__name__, (LegacyDistributedMixin, base), members)
    return kind.from_config(optimizer.get_config())
