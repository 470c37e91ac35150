"""Horovod for Keras 3, on TensorFlow, PyTorch or JAX; with TF_USE_LEGACY_KERAS=1 for tf_keras.

::

    import horovod.keras as hvd

    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam(0.001 * hvd.size())), ...)
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""

from __future__ import annotations

from typing import Any

from horovod import _keras
from horovod._core.average import resolve_op
from horovod._core.basics import basics
from horovod._core.gradients import checked_groups
from horovod._core.process_sets import ProcessSet, global_process_set
from horovod._keras._calls import (
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    init,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rank,
    rocm_built,
    shutdown,
    size,
    start_timeline,
    stop_timeline,
    sycl_built,
)
from horovod._keras.backends import backend_module

from . import callbacks, elastic
from ._backend import backend, keras

Average = basics.Average
Sum = basics.Sum
Adasum = basics.Adasum
Compression = backend.Compression


def DistributedOptimizer(  # noqa: N802 - name of the public API
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    num_groups: int = 0,
    groups: Any = None,
) -> Any:
    """Return an optimizer of the same class name that steps along the gradients of all ranks.

    Arguments:
        optimizer: computes the update from the combined gradients.
        name: of the optimizer; default "Distributed" and its class.
        device_dense: with TensorFlow: where operations on dense tensors are placed.
        device_sparse: with TensorFlow: where operations on tf.IndexedSlices are placed.
        compression: how gradients travel, e.g. Compression.fp16.
        sparse_as_dense: send sparse gradients as dense ones.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        op: Average or Sum.
        num_groups: old name of `groups` as a number.
        groups: a number of groups, or lists of variables, whose gradients travel together.

    Raises:
        ValueError: an option that is refused, such as a predivide factor without Average.

    """
    return _keras.create_distributed_optimizer(
        keras,
        optimizer,
        name=name,
        device_dense=device_dense,
        device_sparse=device_sparse,
        compression=compression,
        sparse_as_dense=sparse_as_dense,
        gradient_predivide_factor=gradient_predivide_factor,
        op=op,
        groups=checked_groups(num_groups, groups),
    )


def PartialDistributedOptimizer(  # noqa: N802 - name of the public API
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: int = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    local_layers: Any = None,
    scale_local_gradients: bool = True,
) -> Any:
    """DistributedOptimizer that leaves out the weights of some layers.

    Arguments:
        optimizer: computes the update from the combined gradients.
        name: of the optimizer; default "Distributed" and its class.
        device_dense: with TensorFlow: where operations on dense tensors are placed.
        device_sparse: with TensorFlow: where operations on tf.IndexedSlices are placed.
        compression: how gradients travel, e.g. Compression.fp16.
        sparse_as_dense: send sparse gradients as dense ones.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        op: Average or Sum.
        backward_passes_per_step: passes whose gradients are summed locally before they
            travel.
        average_aggregated_gradients: divide that local sum by the number of passes.
        groups: a number of groups, or lists of variables, whose gradients travel together.
        process_set: the ranks that take part, all of which must call this.
        local_layers: a layer or several, whose weights stay local: their gradients do not
            travel.
        scale_local_gradients: divide gradients of local variables, which do not travel, by
            the size of the set, as the others are by an average.

    Raises:
        ValueError: an option that is refused, such as a predivide factor without Average.

    """
    weights = _keras.local_layer_weights(keras, local_layers)
    made = _keras.create_distributed_optimizer(
        keras,
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
        groups=checked_groups(0, groups),
        process_set=process_set,
        scale_local_gradients=scale_local_gradients,
    )
    for weight in weights:
        made.register_local_var(weight)
    return made


def broadcast_global_variables(root_rank: int) -> Any:
    """Overwrite all global variables with those of the root; for graphs of TensorFlow 1.

    With Keras 3 and in eager execution there are none: use the callback or hvd.broadcast_variables.

    Arguments:
        root_rank: the rank whose value counts; a global rank, also in a process set.

    Raises:
        RuntimeError: in eager execution.

    """
    return backend_module("tensorflow").broadcast_global_variables(root_rank)


def allreduce(
    value: Any,
    name: str | None = None,
    average: bool | None = True,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: int | None = None,
    compression: Any = Compression.none,
) -> Any:
    """Combine a number, an array or a tensor of every rank: average unless `op` says otherwise.

    Arguments:
        value: a number, an array or a tensor.
        name: what ranks match the operation by; without one they match by order.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        op: Average, Sum or what else the backend has; default Average.
        compression: how floats travel, e.g. Compression.fp16.

    Raises:
        ValueError: arguments that are refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; with
            TensorFlow as the backend, errors of tf.errors.

    """
    if op is not None and average is True:
        average = None  # the default; whoever gives an op means it
    return backend.allreduce(
        value,
        name,
        op=resolve_op(op, average) if average is not True else Average,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        compression=compression,
    )


def allgather(value: Any, name: str | None = None) -> Any:
    """Concatenate arrays or tensors of all ranks along the first dimension.

    Arguments:
        value: a number, an array or a tensor.
        name: what ranks match the operation by; without one they match by order.

    Raises:
        ValueError: arguments that are refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; with
            TensorFlow as the backend, errors of tf.errors.

    """
    return backend.allgather(value, name)


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """Return the number, array or tensor of the root on every rank.

    Arguments:
        value: a number, an array or a tensor.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.

    Raises:
        ValueError: arguments that are refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; with
            TensorFlow as the backend, errors of tf.errors.

    """
    return backend.broadcast(value, root_rank, name)


def reducescatter(value: Any, name: str | None = None, op: int = Average) -> Any:
    """Combine an array or tensor of every rank, and return this rank's rows.

    Arguments:
        value: a number, an array or a tensor.
        name: what ranks match the operation by; without one they match by order.
        op: Average or Sum.

    Raises:
        ValueError: arguments that are refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; with
            TensorFlow as the backend, errors of tf.errors.

    """
    return backend.reducescatter(value, name, op)


def load_model(
    filepath: Any,
    custom_optimizers: Any = None,
    custom_objects: Any = None,
    compression: Any = Compression.none,
    legacy_opts: bool = False,
) -> Any:
    """Load a model, saved with or without this package, and make its optimizer a distributed one.

    The optimizer keeps the state that was saved. `legacy_opts` is of no consequence: what was saved says it.

    Arguments:
        filepath: the file of the model.
        custom_optimizers: optimizer classes of your own that the file names.
        custom_objects: other objects of your own that the file names, by name.
        compression: how floats travel, e.g. Compression.fp16.
        legacy_opts: accepted, without effect: what was saved says it.

    """
    del legacy_opts
    return _keras.load_model(
        keras,
        lambda optimizer: DistributedOptimizer(optimizer, compression=compression),
        filepath,
        custom_optimizers,
        custom_objects,
    )


__all__ = [
    "Adasum",
    "Average",
    "Compression",
    "DistributedOptimizer",
    "PartialDistributedOptimizer",
    "Sum",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "callbacks",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "elastic",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_initialized",
    "load_model",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "reducescatter",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
    "sycl_built",
]
