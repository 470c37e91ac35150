"""Optimizers of Keras 3 whose gradients are those of all ranks.

Keras hands gradients over in `apply` (TensorFlow, torch) or `stateless_apply` (JAX). They are reduced
there, once; with gradient accumulation only when the accumulated ones are used, which is where Keras
clips them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from horovod._core.reduced_twice import warn_if_reduced

from ._options import OptimizerOptions, Reducer, are_same, variable_key


class Passes(int):
    """A number of passes that can be read like the variable it is with tf_keras."""

    def numpy(self) -> int:
        """Return the number."""
        return int(self)


class AggregationCount:
    """How far the passes of a step have come; Keras itself adds the gradients up."""

    def __init__(self, optimizer: Any, passes: int) -> None:
        """Count by the optimizer's iterations."""
        self._optimizer = optimizer
        self.backward_passes_per_step = passes

    @property
    def counter(self) -> Passes:
        """Passes since the last reduction."""
        return Passes(int(passes_of(self._optimizer)) % self.backward_passes_per_step)


def passes_of(optimizer: Any) -> Any:
    """Return the variable that counts the calls of `apply`, whether or not they end in an update."""
    return getattr(optimizer, "inner_optimizer", optimizer)._iterations  # noqa: SLF001 - has no other name


class Variables(list[Any]):
    """The variables of an optimizer, for programs that call `optimizer.variables()` too."""

    def __call__(self) -> list[Any]:
        """Return the variables, as optimizers of Keras 2 do."""
        return self


class DistributedMixin:
    """What a distributed optimizer adds to its Keras class."""

    _HAS_AGGREGATE_GRAD = True
    _hvd_options: OptimizerOptions
    _hvd_reducer: Reducer
    _hvd_local: set[int]
    _hvd_is_inside = False
    """Whether Keras is at a step whose gradients have come through here."""
    _hvd_reduced: Sequence[Any] = ()
    """What _allreduce has returned last: a program may call it, and apply these very gradients."""
    _hvd_pending: Any = None
    _hvd_is_made = False

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse a LossScaleOptimizer around this one, which is what turns an unused scale off."""
        is_unused = value is None and getattr(self, "loss_scale_factor", None) is None
        if name == "loss_scale_factor" and self._hvd_is_made and is_unused:
            message = (
                "LossScaleOptimizer around a DistributedOptimizer: a rank whose gradients overflow would "
                "leave the others waiting; expected DistributedOptimizer(LossScaleOptimizer(optimizer)), or "
                "with the policy mixed_float16 DistributedOptimizer after the policy has been set"
            )
            raise ValueError(message)
        super().__setattr__(name, value)

    @property
    def variables(self) -> Variables:
        """The variables: a list, and a method as in Keras 2."""
        return Variables(super().variables)  # type: ignore[misc]

    @property
    def iterations(self) -> Any:
        """Batches, also those whose gradients are only added up, which is what learning rates go by.

        While Keras updates variables it is the number of updates, by which Adam corrects its moments.
        """
        if self._hvd_options.backward_passes_per_step > 1 and not self._hvd_is_inside:
            return passes_of(self)
        return super().iterations  # type: ignore[misc]

    @property
    def lr(self) -> Any:
        """The learning rate, by the name it has in Keras 2.

        With TensorFlow it is TensorFlow's variable: tf.keras.backend.set_value refuses that of Keras.
        """
        rate = self.learning_rate
        inner = getattr(rate, "value", None)
        return inner if hasattr(inner, "assign") and hasattr(inner, "numpy") else rate

    @lr.setter
    def lr(self, value: Any) -> None:
        self.learning_rate = value

    @property
    def _agg_helper(self) -> AggregationCount | None:
        passes = self._hvd_options.backward_passes_per_step
        return AggregationCount(self, passes) if passes > 1 else None

    def register_local_var(self, var: Any) -> None:
        """Leave the gradient of this variable out of communication."""
        self._hvd_local.add(variable_key(var))

    def apply(self, grads: Any, trainable_variables: Any = None) -> Any:
        """Reduce the gradients, then do what Keras does."""
        grads = list(grads)
        if self._hvd_is_inside or not grads:
            return super().apply(grads, trainable_variables)  # type: ignore[misc]
        if not self._hvd_has_reduced(grads):
            warn_if_reduced(grads)
            if not self._hvd_reduces_late():
                grads = self._allreduce(grads, self._hvd_variables(trainable_variables))
        with self._hvd_inside():
            return super().apply(grads, trainable_variables)  # type: ignore[misc]

    def stateless_apply(self, optimizer_variables: Any, grads: Any, trainable_variables: Any) -> Any:
        """Reduce the gradients, then do what Keras does; it need not call apply."""
        grads = list(grads)
        if not self._hvd_has_reduced(grads) and not self._hvd_reduces_late():
            grads = self._allreduce(grads, self._hvd_variables(None))
        with self._hvd_inside():
            return super().stateless_apply(  # type: ignore[misc]
                optimizer_variables, grads, trainable_variables
            )

    def _hvd_has_reduced(self, grads: Sequence[Any]) -> bool:
        if are_same(grads, self._hvd_reduced):
            return True
        object.__setattr__(self, "_hvd_reduced", ())
        return False

    @contextmanager
    def _hvd_inside(self) -> Iterator[None]:
        object.__setattr__(self, "_hvd_is_inside", True)
        try:
            yield
        finally:
            object.__setattr__(self, "_hvd_is_inside", False)
            object.__setattr__(self, "_hvd_reduced", ())

    # ---- with gradient accumulation

    def _hvd_reduces_late(self) -> bool:
        return bool(getattr(self, "gradient_accumulation_steps", None)) and hasattr(
            super(), "_backend_apply_gradients"
        )

    def _backend_apply_gradients(self, grads: Any, trainable_variables: Any) -> Any:
        if self._hvd_reduces_late() and not self._hvd_reduced:
            object.__setattr__(self, "_hvd_pending", list(trainable_variables))
        try:
            return super()._backend_apply_gradients(grads, trainable_variables)  # type: ignore[misc]
        finally:
            object.__setattr__(self, "_hvd_pending", None)

    def _clip_gradients(self, grads: Any) -> Any:
        if self._hvd_pending is not None:
            grads = self._allreduce(list(grads), self._hvd_pending)
        return super()._clip_gradients(grads)  # type: ignore[misc]

    # ----

    def _hvd_variables(self, given: Any) -> list[Any]:
        return list(given) if given is not None else list(self._trainable_variables)  # type: ignore[attr-defined]

    def _allreduce(self, grads: Sequence[Any], vars: Sequence[Any]) -> list[Any]:
        """Reduce the gradients but for local ones. Programs put methods of their own before this one."""
        gradients, variables = list(grads), list(vars)
        options = self._hvd_options
        shared = [
            index
            for index, (gradient, variable) in enumerate(zip(gradients, variables, strict=True))
            if gradient is not None and variable_key(variable) not in self._hvd_local
        ]
        reduced = self._allreduce_grads(
            [gradients[index] for index in shared], [variables[index] for index in shared]
        )
        results = list(gradients)
        if options.scale_local_gradients and self._hvd_local:
            size = options.process_set.size() or 1
            results = [gradient if gradient is None else gradient / size for gradient in gradients]
        for index, gradient in zip(shared, reduced, strict=True):
            results[index] = gradient
        if options.backward_passes_per_step > 1 and not options.average_aggregated_gradients:
            # Keras averages over the passes; by default they are added.
            passes = options.backward_passes_per_step
            results = [gradient if gradient is None else gradient * passes for gradient in results]
        object.__setattr__(self, "_hvd_reduced", results)
        return list(results)

    def _allreduce_grads(self, grads: Sequence[Any], vars: Sequence[Any], **names: Any) -> list[Any]:
        """Reduce gradients of variables that are not local; programs replace this one, too."""
        return self._hvd_reducer(list(grads), list(vars), **names)


def public_class(optimizer: Any) -> tuple[str, str]:
    """Return module and name under which Keras finds the class again, on any backend.

    The torch backend has classes of its own behind the public names. A class from elsewhere keeps its own.
    """
    try:
        from keras.src.api_export import get_name_from_symbol  # noqa: PLC0415 - private, may go
    except ImportError:
        return type(optimizer).__module__, type(optimizer).__name__
    for candidate in type(optimizer).__mro__:
        if candidate.__module__.partition(".")[0] != "keras":
            break
        public = get_name_from_symbol(candidate)
        if public:
            module, _, name = public.rpartition(".")
            return module, name
    return type(optimizer).__module__, type(optimizer).__name__


def distribute(optimizer: Any, options: OptimizerOptions, reducer: Reducer) -> Any:
    """Return an optimizer like the given one, its state included, that reduces gradients."""
    config = optimizer.get_config()
    if options.backward_passes_per_step > 1:
        # Inside a LossScaleOptimizer, which wants to see the gradients of every pass, it is the other one
        # that adds them up.
        accumulating = config["inner_optimizer"]["config"] if "inner_optimizer" in config else config
        if accumulating.get("gradient_accumulation_steps"):
            message = (
                "DistributedOptimizer: backward_passes_per_step and gradient_accumulation_steps of the "
                f"optimizer are the same thing; got {options.backward_passes_per_step} and "
                f"{accumulating['gradient_accumulation_steps']}"
            )
            raise ValueError(message)
        accumulating["gradient_accumulation_steps"] = options.backward_passes_per_step
    module, name = public_class(optimizer)
    members = {
        "__module__": module,
        "_name": options.name,  # unless the class gives its instances one
        "_hvd_options": options,
        "_hvd_reducer": staticmethod(reducer),
        "_hvd_local": set(),
    }
    kind: Any = type(name, (DistributedMixin, type(optimizer)), members)
    made = kind.from_config(config)
    object.__setattr__(made, "_hvd_is_made", True)
    trained = getattr(optimizer, "_trainable_variables", None)
    if getattr(optimizer, "built", False) and trained:
        copy_state(optimizer, made, trained)
    return made


def copy_state(source: Any, target: Any, trained: Any) -> None:
    """Give an optimizer the state of another with the same configuration."""
    target.build(trained)
    by_path = {variable.path.split("/", 1)[-1]: variable for variable in source.variables}
    for variable in target.variables:
        known = by_path.get(variable.path.split("/", 1)[-1])
        if known is not None and tuple(known.shape) == tuple(variable.shape):
            variable.assign(known.value)


def with_loss_scale(keras: Any, optimizer: Any) -> Any:
    """Return the optimizer inside a LossScaleOptimizer where compile() would put it into one.

    There it would reduce inside a condition on the gradients of its own rank, and a rank that
    overflows would leave the others waiting.
    """
    is_mixed = keras.config.dtype_policy().name == "mixed_float16"
    if not is_mixed or isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return optimizer
    return keras.optimizers.LossScaleOptimizer(optimizer)
