"""Horovod for tf.keras: Keras 3, or tf_keras with TF_USE_LEGACY_KERAS=1.

::

    import horovod.tensorflow.keras as hvd

    hvd.init()
    model.compile(optimizer=hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.001 * hvd.size())), ...)
    model.fit(..., callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from horovod import _keras
from horovod._core.average import resolve_op
from horovod._core.basics import basics
from horovod._core.gradients import checked_groups
from horovod._core.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
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

Average = basics.Average
Sum = basics.Sum
backend = backend_module("tensorflow")
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
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: ProcessSet = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """Return an optimizer of the same class name that steps along the gradients of all ranks."""
    return _keras.create_distributed_optimizer(
        tf.keras,
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
        groups=checked_groups(num_groups, groups),
        process_set=process_set,
        scale_local_gradients=scale_local_gradients,
    )


def PartialDistributedOptimizer(  # noqa: N802 - name of the public API
    optimizer: Any,
    *args: Any,
    local_layers: Any = None,
    **kwargs: Any,
) -> Any:
    """DistributedOptimizer that leaves out the weights of some layers."""
    weights = _keras.local_layer_weights(tf.keras, local_layers)
    made = DistributedOptimizer(optimizer, *args, **kwargs)
    for weight in weights:
        made.register_local_var(weight)
    return made


def broadcast_global_variables(root_rank: int) -> Any:
    """Overwrite all global variables with those of the root; for graphs of TensorFlow 1.

    With Keras 3 and in eager execution there are none: use the callback or hvd.broadcast_variables.
    """
    return backend_module("tensorflow").broadcast_global_variables(root_rank)


def allreduce(
    value: Any,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: int | None = None,
    compression: Any = Compression.none,
) -> Any:
    """Combine a number, an array or a tensor of every rank: average unless `op` says otherwise."""
    return backend.allreduce(
        value,
        name,
        op=resolve_op(op, average),
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        compression=compression,
    )


def allgather(value: Any, name: str | None = None) -> Any:
    """Concatenate arrays or tensors of all ranks along the first dimension."""
    return backend.allgather(value, name)


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """Return the number, array or tensor of the root on every rank."""
    return backend.broadcast(value, root_rank, name)


def reducescatter(value: Any, name: str | None = None, op: int = Average) -> Any:
    """Combine an array or tensor of every rank, and return this rank's rows."""
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
    """
    del legacy_opts
    return _keras.load_model(
        tf.keras,
        lambda optimizer: DistributedOptimizer(optimizer, compression=compression),
        filepath,
        custom_optimizers,
        custom_objects,
    )


__all__ = [
    "Average",
    "Compression",
    "DistributedOptimizer",
    "PartialDistributedOptimizer",
    "ProcessSet",
    "Sum",
    "add_process_set",
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
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
    "sycl_built",
]
