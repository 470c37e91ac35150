"""Optimizers of tf_keras (Keras 2), old and new ones.

They reduce where gradients are computed: a LossScaleOptimizer around one of them looks at the result and
skips a step, and all ranks must see the same. Whoever computes gradients otherwise hands them to
apply_gradients, where they are then reduced.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from horovod._core.basics import basics
from horovod._core.reduced_twice import warn_if_reduced
from horovod.tensorflow._gradient_reduction import GradientOptions, scaled_local_gradient
from horovod.tensorflow.gradient_aggregation import LocalGradientAggregationHelper
from horovod.tensorflow.gradient_aggregation_eager import LocalGradientAggregationHelperEager

from ._options import OptimizerOptions, Reducer, are_same
from .backends import tensorflow as backend

_numbers = itertools.count()
"""Of optimizers that aggregate in graphs: the variables of each have a scope of their own."""

_COMPUTING = ("compute_gradients", "get_gradients")
"""Methods that compute gradients besides _compute_gradients; which there are depends on the optimizer."""


class LegacyDistributedMixin:
    """What a distributed optimizer adds to its class."""

    _HAS_AGGREGATE_GRAD = True
    _hvd_options: OptimizerOptions
    _hvd_reducer: Reducer
    _hvd_local: set[Any]
    _hvd_is_reduced = False
    """Whether the gradients that come to apply_gradients next have been reduced already."""
    _hvd_reduced: Sequence[Any] = ()
    """What _allreduce has returned last."""
    _agg_helper: LocalGradientAggregationHelper | LocalGradientAggregationHelperEager | None = None

    def register_local_var(self, var: Any) -> None:
        """Leave the gradient of this variable out of communication."""
        self._hvd_local.add(var.ref())
        if self._agg_helper is not None:
            self._agg_helper.register_local_var(var)

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        """Reduce the gradients unless that has been done, then do what Keras does."""
        pairs = list(grads_and_vars)
        variables = [variable for _, variable in pairs]
        gradients = [gradient for gradient, _ in pairs]
        if not self._hvd_is_reduced and not are_same(gradients, self._hvd_reduced):
            warn_if_reduced(gradients)
            pairs = list(zip(self._allreduce(gradients, variables), variables, strict=True))
        object.__setattr__(self, "_hvd_is_reduced", False)
        object.__setattr__(self, "_hvd_reduced", ())
        if self._agg_helper is None:
            return super().apply_gradients(pairs, *args, **kwargs)  # type: ignore[misc]
        with tf.init_scope():
            if hasattr(self, "build") and not getattr(self, "_built", True):
                self.build(variables)
        return self._agg_helper.apply_gradients(
            lambda: super(LegacyDistributedMixin, self).apply_gradients(  # type: ignore[misc]
                pairs, *args, **kwargs
            ),
            self,
            pairs,
        )

    def _allreduce(self, grads: Sequence[Any], vars: Sequence[Any]) -> list[Any]:
        """Reduce the gradients but for local ones; apply_gradients leaves these very results as they are.

        Programs call this, and put methods of their own before it.
        """
        gradients, variables = list(grads), list(vars)
        results = self._hvd_reduce(gradients, variables)
        object.__setattr__(self, "_hvd_reduced", results)
        return list(results)

    def _hvd_reduce(self, gradients: list[Any], variables: list[Any]) -> list[Any]:
        if self._agg_helper is not None:
            return self._hvd_aggregate(self._agg_helper, gradients, variables)
        options = GradientOptions(
            process_set=self._hvd_options.process_set,
            scale_local_gradients=self._hvd_options.scale_local_gradients,
        )
        shared = [i for i, variable in enumerate(variables) if variable.ref() not in self._hvd_local]
        results = [
            scaled_local_gradient(gradient, options) if index not in shared else gradient
            for index, gradient in enumerate(gradients)
        ]
        reduced = self._allreduce_grads([gradients[i] for i in shared], [variables[i] for i in shared])
        for index, gradient in zip(shared, reduced, strict=True):
            results[index] = gradient
        return results

    def _allreduce_grads(
        self, grads: Sequence[Any], vars: Sequence[Any] | None = None, use_generic_names: bool = False
    ) -> list[Any]:
        """Reduce gradients of variables that are not local; programs replace this one, too."""
        return self._hvd_reducer(grads, vars, use_generic_names)

    @staticmethod
    def _hvd_aggregate(helper: Any, gradients: list[Any], variables: list[Any]) -> list[Any]:
        is_first = not helper.locally_aggregated_grads
        results: list[Any] = helper.compute_gradients(gradients, variables)
        if is_first and backend.in_graph():
            made = [helper.counter, *helper.locally_aggregated_grads]
            backend.session().run([variable.initializer for variable in made])
        return results


def _aggregation(options: OptimizerOptions, reducer: Reducer) -> Any:
    common: dict[str, Any] = {
        "backward_passes_per_step": options.backward_passes_per_step,
        "allreduce_func": reducer,
        "sparse_as_dense": options.sparse_as_dense,
        "average_aggregated_gradients": options.average_aggregated_gradients,
        "process_set": options.process_set,
        "scale_local_gradients": options.scale_local_gradients,
    }
    if not backend.in_graph():
        return LocalGradientAggregationHelperEager(**common)
    return LocalGradientAggregationHelper(
        **common,
        rank=basics.rank(),
        optimizer_type=LocalGradientAggregationHelper._OPTIMIZER_TYPE_KERAS,  # noqa: SLF001
        name=f"keras_{next(_numbers)}_",
    )


def _gradients_from(loss: Any, variables: Any, grad_loss: Any, tape: Any) -> list[tuple[Any, Any]]:
    """Differentiate as old optimizers of Keras do, given the gradient of the loss."""
    if tape is None and not callable(loss):
        message = "_compute_gradients: a loss that is a tensor needs the tape that has recorded it"
        raise ValueError(message)
    tape = tf.GradientTape() if tape is None else tape
    if callable(loss):
        with tape:
            if not callable(variables):
                tape.watch(variables)
            loss = loss()
    listed = tf.nest.flatten(variables() if callable(variables) else variables)
    return list(zip(tape.gradient(loss, listed, grad_loss), listed, strict=True))


def _as_old_ones(base: Any) -> Any:
    """Return _compute_gradients for a new optimizer, where Keras has compute_gradients without grad_loss."""

    def compute(
        self: Any, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> list[tuple[Any, Any]]:
        if grad_loss is None:
            return list(base.compute_gradients(self, loss, var_list, tape=tape))
        return _gradients_from(loss, var_list, grad_loss, tape)

    return compute


def _computing(base: type, name: str) -> Any:
    """Return a method that computes gradients as the class does, and reduces them."""
    compute = getattr(base, name) if hasattr(base, name) else _as_old_ones(base)

    def pairs_of(self: Any, *args: Any, **kwargs: Any) -> list[Any]:
        pairs = list(compute(self, *args, **kwargs))
        variables = [variable for _, variable in pairs]
        reduced = self._allreduce([gradient for gradient, _ in pairs], variables)
        object.__setattr__(
            self, "_hvd_is_reduced", True
        )  # also where the program has an _allreduce of its own
        return list(zip(reduced, variables, strict=True))

    def gradients_of(self: Any, loss: Any, params: Any) -> list[Any]:
        variables = tf.nest.flatten(params)
        reduced = self._allreduce(list(compute(self, loss, params)), variables)
        object.__setattr__(self, "_hvd_is_reduced", True)
        return list(reduced)

    return gradients_of if name == "get_gradients" else pairs_of


def _config_of(optimizer: Any) -> Any:
    try:
        return optimizer.get_config()
    except NotImplementedError as error:
        if not backend.in_graph():
            raise
        name = type(optimizer).__name__
        message = (
            f"DistributedOptimizer: {name} is of a kind that Keras itself cannot train with in graphs of "
            f"TensorFlow 1; use tf.keras.optimizers.legacy.{name}"
        )
        raise NotImplementedError(message) from error


def distribute(optimizer: Any, options: OptimizerOptions, reducer: Reducer) -> Any:
    """Return an optimizer like the given one that reduces gradients."""
    base = type(optimizer)
    members = {
        "__module__": base.__module__,
        "_name": options.name,  # unless the class gives its instances one
        "_hvd_options": options,
        "_hvd_reducer": staticmethod(reducer),
        "_hvd_local": set(),
    }
    computing = ["_compute_gradients", *(name for name in _COMPUTING if hasattr(base, name))]
    members.update({name: _computing(base, name) for name in computing})
    if options.backward_passes_per_step > 1:
        members["_agg_helper"] = _aggregation(options, reducer)
    kind: Any = type(base.__name__, (LegacyDistributedMixin, base), members)
    return kind.from_config(_config_of(optimizer))
