"""From local gradients to reduced ones: what tapes and optimizers of every kind share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from horovod._core.gradients import form_groups, scale_factors
from horovod._core.process_sets import ProcessSet, global_process_set, registered_id

from ._gradient_schedule import gradient_schedule
from ._reductions import allreduce, grouped_allreduce
from .compression import Compression
from .mpi_ops import Adasum, Average, process_set_included_op, size_op
from .util import _executing_eagerly, is_elastic

Gradients = Sequence[Any]
ReduceGradients = Callable[..., list[Any]]

_MOST_GRAPHS = 16

_graphs: dict[Any, Any] = {}
"""Graphs that reduce gradients in eager execution, the latest ones; see GradientReducer._graph."""


@dataclass(frozen=True)
class GradientOptions:
    """How gradients are reduced: the parameters that tapes and optimizers have in common."""

    device_dense: str = ""
    device_sparse: str = ""
    compression: Any = Compression.none
    sparse_as_dense: bool = False
    op: int = Average
    gradient_predivide_factor: float = 1.0
    groups: Any = None
    process_set: ProcessSet = global_process_set
    scale_local_gradients: bool = True


def check_predivide(op: int, factor: float) -> None:
    """Refuse a factor where nothing is averaged."""
    if factor != 1.0 and op != Average:
        message = f"gradient_predivide_factor not supported with op != Average, got a factor of {factor}"
        raise ValueError(message)


def _key_of(variable: Any) -> Any:
    """Return what two references to one variable have in common."""
    value = getattr(variable, "value", None)
    if isinstance(value, tf.Variable):  # of Keras 3
        variable = value
    return variable.ref() if hasattr(variable, "ref") else id(variable)


def _densify(gradient: Any) -> Any:
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


def _copied(gradient: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(
            tf.identity(gradient.values), tf.identity(gradient.indices), gradient.dense_shape
        )
    return tf.identity(gradient)


def _when_due(gradients: list[Any]) -> AbstractContextManager[Any]:
    """Return the scope for operations on these gradients: in mode "step" they wait for all of them.

    Where all cores compute, reductions in between take cores from the computation of this rank and
    of those that it must wait for.
    """
    if len(gradients) > 1 and gradient_schedule().mode == "step":
        return tf.control_dependencies([tf.group(*gradients)])  # type: ignore[no-any-return]
    return nullcontext()


class GradientReducer:
    """Reduces lists of gradients; None stays None. Call it the same way on every rank."""

    def __init__(self, name: str, options: GradientOptions) -> None:
        """Name the scope that its ops get in graphs."""
        check_predivide(options.op, options.gradient_predivide_factor)
        self.name = name
        self.options = options
        self._prescale, self._postscale = scale_factors(
            average=options.op == Average, predivide_factor=options.gradient_predivide_factor
        )

    def __call__(
        self, gradients: Gradients, variables: Gradients | None = None, use_generic_names: bool = False
    ) -> list[Any]:
        """Return the reduced gradients; the variables are needed only where groups name them."""
        wanted = [_densify(g) if self.options.sparse_as_dense else g for g in gradients]
        present = [index for index, gradient in enumerate(wanted) if gradient is not None]
        if not present or not self._is_needed():
            return wanted
        groups = self._groups(present, variables)
        reduced = self._run([wanted[index] for index in present], groups, use_generic_names)
        results: list[Any] = [None] * len(wanted)
        for index, gradient in zip(present, reduced, strict=True):
            results[index] = gradient
        return results

    def _is_needed(self) -> bool:
        if is_elastic() and not _executing_eagerly():
            return True  # decided when the graph runs
        process_set = self.options.process_set
        return bool(process_set.included()) and (process_set.size() or 1) > 1

    def _groups(self, present: list[int], variables: Gradients | None) -> list[list[int]]:
        """Return positions among the present gradients that are reduced together."""
        positions = list(range(len(present)))
        groups = self.options.groups
        if groups is None:
            return [[position] for position in positions]
        if isinstance(groups, int):
            return form_groups(positions, groups, key=_itself)
        if variables is None:
            message = "groups of variables need the variables that the gradients belong to"
            raise ValueError(message)
        place = {_key_of(variables[index]): position for position, index in enumerate(present)}
        listed = [[place[key] for key in map(_key_of, group) if key in place] for group in groups]
        return form_groups(positions, listed, key=_itself)

    def _run(self, gradients: list[Any], groups: list[list[int]], use_generic_names: bool) -> list[Any]:
        if not _executing_eagerly():
            return self._in_graph(gradients, groups, use_generic_names)
        # Eagerly the operations would wait for each other; a graph has all of them under way at once.
        return list(self._graph(groups, use_generic_names)(gradients))

    def _graph(self, groups: list[list[int]], use_generic_names: bool) -> Any:
        """Return the graph of all reducers of this kind: programs make a tape, and so a reducer, per step."""
        options = self.options
        key = (
            self.name,
            (options.device_dense, options.device_sparse, id(options.compression), options.op),
            (self._prescale, self._postscale, options.groups is None),
            (registered_id(options.process_set), options.process_set.size(), is_elastic()),
            (tuple(map(tuple, groups)), use_generic_names),
        )
        graph = _graphs.get(key)
        if graph is None:
            graph = tf.function(lambda given: self._in_graph(given, groups, use_generic_names))
            if len(_graphs) >= _MOST_GRAPHS:
                _graphs.pop(next(iter(_graphs)))
            _graphs[key] = graph
        return graph

    def _in_graph(self, gradients: list[Any], groups: list[list[int]], use_generic_names: bool) -> list[Any]:
        with tf.name_scope(f"{self.name}_Allreduce"):
            if not is_elastic():
                return self._reduce(gradients, groups, use_generic_names)
            # Between the runs of a graph the job may change its size.
            set_id = registered_id(self.options.process_set)
            with tf.device("/cpu:0"):
                needed = tf.logical_and(process_set_included_op(set_id) > 0, size_op(set_id) > 1)
            return list(
                tf.cond(
                    needed,
                    lambda: self._reduce(gradients, groups, use_generic_names),
                    lambda: [_copied(gradient) for gradient in gradients],
                )
            )

    def _reduce(self, gradients: list[Any], groups: list[list[int]], use_generic_names: bool) -> list[Any]:
        results: list[Any] = [None] * len(gradients)
        with _when_due(gradients):
            for number, members in enumerate(groups):
                reduced = self._reduce_group([gradients[i] for i in members], number, use_generic_names)
                for position, gradient in zip(members, reduced, strict=True):
                    results[position] = gradient
        return results

    def _reduce_group(self, gradients: list[Any], number: int, use_generic_names: bool) -> list[Any]:
        options = self.options
        # Rows of sparse gradients are gathered, not added: nothing to scale on the way.
        is_sparse = any(isinstance(gradient, tf.IndexedSlices) for gradient in gradients)
        reduction = {
            "device_dense": options.device_dense,
            "device_sparse": options.device_sparse,
            "compression": options.compression,
            "op": options.op,
            "prescale_factor": 1.0 if is_sparse else self._prescale,
            "postscale_factor": 1.0 if is_sparse else self._postscale,
            "process_set": options.process_set,
            "ignore_name_scope": use_generic_names or is_elastic(),
            "name": self._operation_name(number, use_generic_names),
        }
        if options.groups is None:
            return [allreduce(gradients[0], **reduction)]
        return list(grouped_allreduce(gradients, **reduction))

    def _operation_name(self, number: int, use_generic_names: bool) -> str | None:
        if use_generic_names:
            return f"grad_{number}"
        # The names of tensors follow those of layers, which TensorFlow counts in each process: a newcomer
        # has built fewer of them than those that were there before.
        return f"{self.name}.grad_{number}" if is_elastic() else None


def _itself(position: int) -> int:
    return position


def _make_allreduce_grads_fn(
    name: str,
    device_dense: str,
    device_sparse: str,
    compression: Any,
    sparse_as_dense: bool,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
) -> GradientReducer:
    """Return what reduces (gradients, variables); programs with optimizers of their own ask for it."""
    options = GradientOptions(
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        groups,
        process_set,
    )
    return GradientReducer(name, options)


def scaled_local_gradient(gradient: Any, options: GradientOptions) -> Any:
    """Return the gradient of a variable that is never communicated, as it counts among averaged ones."""
    if gradient is None or not options.scale_local_gradients:
        return gradient
    size = options.process_set.size() or 1
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / size, gradient.indices, gradient.dense_shape)
    return gradient / size


def check_adasum(op: int, average_aggregated_gradients: bool) -> None:
    """Adasum has no average over passes."""
    if op == Adasum and average_aggregated_gradients:
        message = "Adasum does not support average_aggregated_gradients == True"
        raise ValueError(message)
