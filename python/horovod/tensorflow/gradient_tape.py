"""tf.GradientTape whose gradients are those of all ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from horovod._core.gradients import checked_groups
from horovod._core.process_sets import ProcessSet, global_process_set
from horovod._core.reduced_twice import mark_reduced

from ._gradient_reduction import GradientOptions, GradientReducer, scaled_local_gradient
from .compression import Compression
from .mpi_ops import Average


def _key_of(source: Any) -> Any:
    value = getattr(source, "value", None)
    if isinstance(value, tf.Variable):  # of Keras 3
        source = value
    return source.ref() if hasattr(source, "ref") else id(source)


class _DistributedGradientTape(tf.GradientTape):
    """What DistributedGradientTape adds to the class of a tape."""

    _hvd_reducer: GradientReducer
    _hvd_local: set[Any]

    def register_local_source(self, source: Any) -> None:
        """Leave the gradient of this source out of communication."""
        self._hvd_local.add(_key_of(source))

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return gradients in the structure of the sources: reduced, but for those of local sources."""
        gradients = super().gradient(target, sources, output_gradients, **kwargs)
        flat = tf.nest.flatten(gradients)
        of = tf.nest.flatten(sources)
        reduced = self._hvd_reduce(of, flat, use_generic_names)
        return tf.nest.pack_sequence_as(gradients, reduced)

    def get_local_and_global_gradients(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        use_generic_names: bool = False,
    ) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
        """Return (source, gradient) pairs: those of local sources, and the reduced ones."""
        reduced = self.gradient(target, sources, output_gradients, use_generic_names)
        pairs = list(zip(tf.nest.flatten(sources), tf.nest.flatten(reduced), strict=True))
        local = [pair for pair in pairs if _key_of(pair[0]) in self._hvd_local]
        others = [pair for pair in pairs if _key_of(pair[0]) not in self._hvd_local]
        return local, others

    def _hvd_reduce(self, sources: list[Any], gradients: list[Any], use_generic_names: bool) -> list[Any]:
        options = self._hvd_reducer.options
        shared = [i for i, source in enumerate(sources) if _key_of(source) not in self._hvd_local]
        reduced = self._hvd_reducer(
            [gradients[i] for i in shared], [sources[i] for i in shared], use_generic_names
        )
        results = [scaled_local_gradient(gradient, options) for gradient in gradients]
        for index, gradient in zip(shared, reduced, strict=True):
            results[index] = gradient
            if gradient is not gradients[index]:
                mark_reduced(gradient)
        return results


def DistributedGradientTape(  # noqa: N802 - name of the public API
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return a tape like the given one, with what it has recorded, whose gradients are reduced.

    Arguments:
        gradtape: a tf.GradientTape, after the computation.
        device_dense: where TensorFlow places operations on dense tensors, e.g. "/cpu:0".
        device_sparse: where TensorFlow places operations on tf.IndexedSlices.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        sparse_as_dense: send sparse gradients as dense ones.
        op: Average, Sum or Adasum.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        num_groups: old name of `groups` as a number.
        groups: a number of groups, or lists of variables, whose gradients travel together.
        process_set: the ranks that take part, all of which must call this.
        scale_local_gradients: divide gradients of local variables, which do not travel, by
            the size of the set, as the others are by an average.

    Raises:
        ValueError: an option that is refused, such as a predivide factor without Average.

    """
    options = GradientOptions(
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        checked_groups(num_groups, groups),
        process_set,
        scale_local_gradients,
    )
    base = type(gradtape)
    bases = (_DistributedGradientTape,) if base is tf.GradientTape else (_DistributedGradientTape, base)
    kind: Any = type(base.__name__, bases, {})  # a class of the same name
    tape = kind.__new__(kind)
    tape.__dict__.update(gradtape.__dict__)
    tape._hvd_reducer = GradientReducer("DistributedGradientTape", options)  # noqa: SLF001 - ours
    tape._hvd_local = set()  # noqa: SLF001 - ours
    return tape


def local_layer_weights(local_layers: Any) -> list[Any]:
    """Return the weights of layers that stay out of communication."""
    if local_layers is None:
        return []
    layers = list(local_layers) if isinstance(local_layers, Iterable) else [local_layers]
    for layer in layers:
        if not hasattr(layer, "trainable_weights"):
            message = (
                "local_layers must be a tf.keras.layers.Layer or an iterable of them, "
                f"got {type(layer).__name__}"
            )
            raise ValueError(message)
    return [weight for layer in layers for weight in layer.trainable_weights]


def PartialDistributedGradientTape(  # noqa: N802 - name of the public API
    gradtape: Any,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """DistributedGradientTape that leaves out the weights of some layers.

    Arguments:
        gradtape: a tf.GradientTape, after the computation.
        device_dense: where TensorFlow places operations on dense tensors, e.g. "/cpu:0".
        device_sparse: where TensorFlow places operations on tf.IndexedSlices.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        sparse_as_dense: send sparse gradients as dense ones.
        op: Average, Sum or Adasum.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        num_groups: old name of `groups` as a number.
        groups: a number of groups, or lists of variables, whose gradients travel together.
        process_set: the ranks that take part, all of which must call this.
        local_layers: a layer or several, whose weights stay local: their gradients do not
            travel.
        scale_local_gradients: divide gradients of local variables, which do not travel, by
            the size of the set, as the others are by an average.

    Raises:
        ValueError: an option that is refused, such as a predivide factor without Average.

    """
    weights = local_layer_weights(local_layers)
    tape = DistributedGradientTape(
        gradtape,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
    for weight in weights:
        tape.register_local_source(weight)
    return tape
