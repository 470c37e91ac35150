"""What horovod.keras and horovod.tensorflow.keras share."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable
from typing import Any

from horovod._core.gradients import check_backward_passes
from horovod._core.process_sets import ProcessSet, global_process_set

from . import _optimizer
from ._options import OptimizerOptions, check_op
from .backends import backend_module


def is_keras3(optimizer: Any) -> bool:
    """Return whether an optimizer (or a module of optimizers) is one of Keras 3."""
    return hasattr(optimizer, "stateless_apply")


def is_distributed(optimizer: Any) -> bool:
    """Return whether an optimizer was made here."""
    return hasattr(type(optimizer), "_hvd_options")


def create_distributed_optimizer(
    keras: Any,
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = None,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = 0,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return an optimizer of the same name as the given one that reduces gradients.

    One that does so already is returned as it is.
    """
    if is_distributed(optimizer):
        return optimizer
    check_op(op)
    check_backward_passes(backward_passes_per_step)
    options = OptimizerOptions(
        name=name or f"Distributed{type(optimizer).__name__}",
        device_dense=device_dense,
        device_sparse=device_sparse,
        compression=compression,
        sparse_as_dense=sparse_as_dense,
        gradient_predivide_factor=gradient_predivide_factor,
        op=op,
        groups=groups,
        process_set=process_set,
        backward_passes_per_step=backward_passes_per_step,
        average_aggregated_gradients=average_aggregated_gradients,
        scale_local_gradients=scale_local_gradients,
    )
    if not is_keras3(optimizer):
        from . import _legacy_optimizer  # noqa: PLC0415 - needs TensorFlow

        reducer = backend_module("tensorflow").make_reducer(options)
        return _legacy_optimizer.distribute(optimizer, options, reducer)
    if not hasattr(keras, "config"):
        keras = importlib.import_module("keras")  # tf_keras is the other Keras of this program
    reducer = backend_module(keras.backend.backend()).make_reducer(options)
    return _optimizer.distribute(_optimizer.with_loss_scale(keras, optimizer), options, reducer)


def local_layer_weights(keras: Any, local_layers: Any) -> list[Any]:
    """Return the weights of layers that stay out of communication."""
    if local_layers is None:
        return []
    layers = list(local_layers) if isinstance(local_layers, Iterable) else [local_layers]
    # A program may have both Keras 3 and tf_keras.
    modules = [keras, *(sys.modules[name] for name in ("keras", "tf_keras") if name in sys.modules)]
    kinds = tuple(module.layers.Layer for module in modules)
    for layer in layers:
        if not isinstance(layer, kinds):
            kind = type(layer).__name__
            message = f"local_layers must be a keras.layers.Layer or an iterable of them, got {kind}"
            raise ValueError(message)  # noqa: TRY004 - type of the public API
    return [weight for layer in layers for weight in layer.trainable_weights]


def load_model(
    keras: Any,
    wrap: Any,
    filepath: Any,
    custom_optimizers: Any = None,
    custom_objects: Any = None,
) -> Any:
    """Load a model and give it a distributed optimizer with the state that was saved."""
    objects = {kind.__name__: kind for kind in custom_optimizers or ()}
    objects.update(custom_objects or {})
    objects = {name: _class_of(keras, kind) for name, kind in objects.items()}
    model = keras.models.load_model(filepath, custom_objects=objects or None)
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return model
    distributed = wrap(optimizer)
    if not is_keras3(optimizer):
        if distributed is not optimizer:
            _copy_legacy_state(optimizer, distributed, model)
    elif not distributed.built:
        _read_state(distributed, model, filepath)
    model.optimizer = distributed
    return model


def _class_of(keras: Any, made_by: Any) -> Any:
    """Return the class of the optimizers that a function makes, or what was given.

    Programs pass functions such as `lambda **config: DistributedOptimizer(Mine(**config))`, where Keras
    asks for classes. Other functions, losses among them, have arguments by name and are left alone.
    """
    if isinstance(made_by, type) or not inspect.isroutine(made_by):
        return made_by
    takes = inspect.signature(made_by).parameters.values()
    if not all(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in takes):
        return made_by
    made = made_by()
    is_optimizer = isinstance(made, keras.optimizers.Optimizer) or is_distributed(made)
    return type(made) if is_optimizer else made_by


def _read_state(optimizer: Any, model: Any, filepath: Any) -> None:
    """Read the state of an optimizer from an .h5 file; Keras 3 itself leaves it there."""
    if not str(filepath).endswith((".h5", ".hdf5")):
        return
    import h5py  # noqa: PLC0415 - Keras has loaded it

    with h5py.File(filepath, "r") as file:
        group = file.get("optimizer_weights")
        names = [] if group is None else list(group.attrs.get("weight_names", ()))
        values = [group[name][()] for name in names]
    optimizer.build(model.trainable_variables)
    if len(values) == len(optimizer.variables):
        for variable, value in zip(optimizer.variables, values, strict=True):
            variable.assign(value)


def _copy_legacy_state(source: Any, target: Any, model: Any) -> None:
    if hasattr(target, "build"):
        target.build(model.trainable_variables)
    elif source.get_weights():
        # The old kind of tf_keras makes its slots in the first step: one along zeros.
        target._create_all_weights(model.trainable_variables)  # noqa: SLF001
    variables = source.variables() if callable(source.variables) else source.variables
    mine = target.variables() if callable(target.variables) else target.variables
    for variable, saved in zip(mine, variables, strict=False):
        variable.assign(saved)
