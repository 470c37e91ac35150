"""Keras on TensorFlow, and tf_keras: the ops of horovod.tensorflow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

import horovod.tensorflow as hvd
from horovod._keras._options import OptimizerOptions, Reducer
from horovod.tensorflow._gradient_reduction import GradientOptions, GradientReducer

from . import _eager

Compression = hvd.Compression


def make_reducer(options: OptimizerOptions) -> Reducer:
    """Return a function that reduces gradients, sparse ones included."""
    return GradientReducer(
        options.name,
        GradientOptions(
            device_dense=options.device_dense,
            device_sparse=options.device_sparse,
            compression=options.compression or Compression.none,
            sparse_as_dense=options.sparse_as_dense,
            op=options.op,
            gradient_predivide_factor=options.gradient_predivide_factor,
            groups=options.groups,
            process_set=options.process_set,
        ),
    )


def in_graph() -> bool:
    """Return whether variables have values only in a session: with TensorFlow 1, outside of functions."""
    return not tf.executing_eagerly() and not tf.inside_function()


def session() -> Any:
    """Return the session of Keras, with its variables initialized."""
    return tf.compat.v1.keras.backend.get_session()


def read_variable(variable: Any) -> float:
    """Return the value of a number or of a variable that holds one."""
    if in_graph() and hasattr(variable, "assign"):
        return float(session().run(variable))
    return _eager.read_variable(variable)


def write_variable(variable: Any, value: float) -> None:
    """Set a variable."""
    if in_graph():
        variable.load(value, session())  # without a new op in the graph for every value
    else:
        _eager.write_variable(variable, value)


def _evaluated(tensor: Any) -> Any:
    """Return the tensor itself, or in a graph of TensorFlow 1 its value."""
    return session().run(tensor) if in_graph() else tensor


def allreduce(value: Any, name: str | None, **reduction: Any) -> Any:
    """See horovod.keras.allreduce."""
    return _evaluated(hvd.allreduce(tf.constant(value, name=name), name=name, **reduction))


def allgather(value: Any, name: str | None) -> Any:
    """See horovod.keras.allgather."""
    return _evaluated(hvd.allgather(tf.constant(value, name=name), name=name))


def broadcast(value: Any, root_rank: int, name: str | None) -> Any:
    """See horovod.keras.broadcast."""
    return _evaluated(hvd.broadcast(tf.constant(value, name=name), root_rank, name=name))


def reducescatter(value: Any, name: str | None, op: int) -> Any:
    """See horovod.keras.reducescatter."""
    return _evaluated(hvd.reducescatter(tf.constant(value, name=name), op=op, name=name))


def _tensorflow_variable(variable: Any) -> Any:
    """Return the tf.Variable behind a variable of Keras 3, or the variable itself."""
    value = getattr(variable, "value", None)
    return value if isinstance(value, tf.Variable) else variable


def broadcast_variables(variables: Iterable[Any], root_rank: int) -> None:
    """Overwrite variables with those of the root, one by one in their order.

    Their names do not matter: a model that was loaded has others than one that was made.
    """
    listed = [_tensorflow_variable(variable) for variable in variables]

    def assign() -> Any:
        for index, variable in enumerate(listed):
            label = f"HorovodBroadcastVariables_{index}"
            yield variable.assign(hvd.broadcast(tf.convert_to_tensor(variable), root_rank, label))

    def assign_all() -> None:
        tf.group(*assign())

    if tf.executing_eagerly():
        tf.function(assign_all)()  # so that all are under way at once
    else:
        _evaluated(tf.group(*assign()))


def global_variables() -> list[Any]:
    """Return the global variables of a graph of TensorFlow 1, in the order they were made."""
    return list(tf.compat.v1.global_variables())


def broadcast_global_variables(root_rank: int) -> Any:
    """Overwrite the global variables of a graph with those of the root, in the session of Keras."""
    return _evaluated(hvd.broadcast_global_variables(root_rank))
