"""The operations on dense tensors, one op each, and the calls about the job; named as in the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from horovod._core.average import get_average_backwards_compatibility_fun
from horovod._core.basics import HorovodBasics, basics
from horovod._core.codes import NO_WIRE_DTYPE
from horovod._core.process_sets import (
    ProcessSet,
    global_process_set,
    registered_id,
)
from horovod.common.util import num_rank_is_power_2

from ._library import ops
from .util import (
    _executing_eagerly,
    check_not_compiled,
    first_and_last,
    is_elastic,
    is_part_of_dataset,
    node_name,
    normalize_name,
    tensor_label,
)

MPI_LIB = ops
"""The ops as TensorFlow made them; the name is that of the original."""

_basics: HorovodBasics = basics
_normalize_name = normalize_name

Average = basics.Average
Sum = basics.Sum
Adasum = basics.Adasum
Min = basics.Min
Max = basics.Max
Product = basics.Product

init = basics.init
shutdown = basics.shutdown
is_initialized = basics.is_initialized
start_timeline = basics.start_timeline
stop_timeline = basics.stop_timeline
size = basics.size
local_size = basics.local_size
cross_size = basics.cross_size
rank = basics.rank
local_rank = basics.local_rank
cross_rank = basics.cross_rank
is_homogeneous = basics.is_homogeneous
mpi_threads_supported = basics.mpi_threads_supported
mpi_enabled = basics.mpi_enabled
mpi_built = basics.mpi_built
gloo_enabled = basics.gloo_enabled
gloo_built = basics.gloo_built
nccl_built = basics.nccl_built
ddl_built = basics.ddl_built
ccl_built = basics.ccl_built
cuda_built = basics.cuda_built
rocm_built = basics.rocm_built
sycl_built = basics.sycl_built

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun(basics)


def check_num_rank_power_of_2(num_rank: int) -> bool:
    """Return whether the number is a power of two; nothing here needs it to be one.

    Arguments:
        num_rank: a number of ranks.

    """
    return num_rank_is_power_2(num_rank)


def _begin(operation: str) -> None:
    """Make sure that an operation can run where it is being built; every collective calls it first.

    tf.data runs a stateless function on several elements at once, on its own account, and the elements'
    operations would meet those of other elements on other ranks. A stateful op in the function keeps it
    from that.
    """
    check_not_compiled(operation)
    if is_part_of_dataset():
        ops.horovod_rank(name="HorovodKeepsElementsInOrder")


def _names(operation: str, name: str | None, label: Any) -> dict[str, str]:
    """Return what an op is called: in a graph its node, otherwise what ranks match by.

    The name of an eager operation never reaches the kernel but as an attribute. An unnamed one stays
    unnamed there, and is matched by order.
    """
    if _executing_eagerly():
        return {"tensor_name": name or ""}
    if name is None:
        return {"name": f"Horovod{operation}_{label()}"}
    return {"name": node_name(name)}


def _set_id(process_set: ProcessSet) -> int:
    """Return the id; one that nobody registered is refused here, while a graph is built, too."""
    set_id = registered_id(process_set)
    if set_id != global_process_set.process_set_id:
        process_set.size()
    return set_id


def _allreduce(
    tensor: Any,
    name: str | None = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    *,
    wire_dtype: int = NO_WIRE_DTYPE,
) -> Any:
    """Combine a tensor of every rank; the gradient is the same operation."""
    _begin("allreduce")
    return ops.horovod_allreduce(
        tensor,
        reduce_op=op,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        ignore_name_scope=ignore_name_scope,
        process_set_id=_set_id(process_set),
        wire_dtype=wire_dtype,
        **_names("Allreduce", name, lambda: tensor_label(tensor)),
    )


def _grouped_allreduce(
    tensors: Sequence[Any],
    name: str | None = None,
    op: int = Sum,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    *,
    wire_dtype: int = NO_WIRE_DTYPE,
) -> list[Any]:
    """Combine several tensors of one dtype as one operation."""
    _begin("grouped_allreduce")
    return list(
        ops.horovod_grouped_allreduce(
            tensors,
            reduce_op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            ignore_name_scope=ignore_name_scope,
            process_set_id=_set_id(process_set),
            wire_dtype=wire_dtype,
            **_names("GroupedAllreduce", name, lambda: first_and_last(tensors)),
        )
    )


def allgather(
    tensor: Any,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Concatenate the tensors of all ranks along the first dimension, which may differ between ranks.

    Arguments:
        tensor: its rows; the first dimension may differ between ranks, the others not.
        name: what ranks match the operation by; without one they match by order.
        ignore_name_scope: leave the name scope out of the name that ranks match by.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: arguments that are refused before anything is sent.
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    _begin("allgather")
    return ops.horovod_allgather(
        tensor,
        ignore_name_scope=ignore_name_scope,
        process_set_id=_set_id(process_set),
        **_names("Allgather", name, lambda: tensor_label(tensor)),
    )


def grouped_allgather(
    tensors: Sequence[Any],
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Gather several tensors of one dtype as one operation.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allgather.
        name: what ranks match the operation by; without one they match by order.
        ignore_name_scope: leave the name scope out of the name that ranks match by.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: arguments that are refused before anything is sent.
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    _begin("grouped_allgather")
    return list(
        ops.horovod_grouped_allgather(
            tensors,
            ignore_name_scope=ignore_name_scope,
            process_set_id=_set_id(process_set),
            **_names("GroupedAllgather", name, lambda: first_and_last(tensors)),
        )
    )


def broadcast(
    tensor: Any,
    root_rank: int,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the tensor of the root, a global rank, on every rank.

    Arguments:
        tensor: what the root sends; of the same shape and dtype on the others.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.
        ignore_name_scope: leave the name scope out of the name that ranks match by.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: arguments that are refused before anything is sent.
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    _begin("broadcast")
    return ops.horovod_broadcast(
        tensor,
        root_rank=root_rank,
        ignore_name_scope=ignore_name_scope,
        process_set_id=_set_id(process_set),
        **_names("Broadcast", name, lambda: tensor_label(tensor)),
    )


def broadcast_(
    variables: Sequence[Any],
    root_rank: int,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Give variables the values of the root; returns the new values.

    Arguments:
        variables: those to overwrite, in the same order on every rank.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    listed = list(variables)
    kinds = {isinstance(variable, tf.Variable) and _is_resource(variable) for variable in listed}
    if len(kinds) > 1:
        message = "broadcast_: resource variables and reference variables cannot be mixed in one call"
        raise ValueError(message)
    values = []
    for index, variable in enumerate(listed):
        label = f"{name}_{index}" if name else None
        value = broadcast(
            _value(variable), root_rank, label or _variable_label(variable), process_set=process_set
        )
        values.append(_assign(variable, value))
    return values


def _is_resource(variable: Any) -> bool:
    from tensorflow.python.ops import resource_variable_ops  # noqa: PLC0415 - slow to import

    return bool(resource_variable_ops.is_resource_variable(variable))


def _value(variable: Any) -> Any:
    return tf.convert_to_tensor(variable)


def _variable_label(variable: Any) -> str | None:
    name = getattr(variable, "name", None)
    return None if name is None or _executing_eagerly() else f"HorovodBroadcast_{tensor_label(variable)}"


def _assign(variable: Any, value: Any) -> Any:
    if _executing_eagerly():
        variable.assign(value)
        return tf.identity(variable)
    if hasattr(tf.compat.v1, "assign") and not tf.compat.v1.executing_eagerly_outside_functions():
        return tf.compat.v1.assign(variable, value)
    return variable.assign(value, read_value=True)


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: str | None = None,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Send splits[i] rows to rank i of the set, and return what the others sent here.

    Without splits every rank gets as many rows; with splits the result is (output, received_splits).

    Arguments:
        tensor: rows for the ranks of the set, in rank order.
        splits: how many rows each rank gets, in rank order: one integer per rank of the
            set. None: the same number each.
        name: what ranks match the operation by; without one they match by order.
        ignore_name_scope: leave the name scope out of the name that ranks match by.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: arguments that are refused before anything is sent.
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    _begin("alltoall")
    process_set.size()  # a call before init is a ValueError, as in the original
    rows = tf.convert_to_tensor([] if splits is None else splits, dtype=tf.int32)
    output, received = ops.horovod_alltoall(
        tensor,
        splits=rows,
        ignore_name_scope=ignore_name_scope,
        process_set_id=_set_id(process_set),
        **_names("Alltoall", name, lambda: tensor_label(tensor)),
    )
    return output if splits is None else (output, received)


def _reducescatter(
    tensor: Any,
    name: str | None = None,
    op: int = Sum,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    *,
    wire_dtype: int = NO_WIRE_DTYPE,
) -> Any:
    """Combine a tensor of every rank, and keep this rank's rows of the result."""
    _begin("reducescatter")
    return ops.horovod_reducescatter(
        tensor,
        reduce_op=op,
        prescale_factor=prescale_factor,
        postscale_factor=postscale_factor,
        ignore_name_scope=ignore_name_scope,
        process_set_id=_set_id(process_set),
        wire_dtype=wire_dtype,
        **_names("Reducescatter", name, lambda: tensor_label(tensor)),
    )


def _grouped_reducescatter(
    tensors: Sequence[Any],
    name: str | None = None,
    op: int = Sum,
    ignore_name_scope: bool = False,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    *,
    wire_dtype: int = NO_WIRE_DTYPE,
) -> list[Any]:
    """Combine several tensors of one dtype as one operation, and keep this rank's rows of each."""
    _begin("grouped_reducescatter")
    return list(
        ops.horovod_grouped_reducescatter(
            tensors,
            reduce_op=op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            ignore_name_scope=ignore_name_scope,
            process_set_id=_set_id(process_set),
            wire_dtype=wire_dtype,
            **_names("GroupedReducescatter", name, lambda: first_and_last(tensors)),
        )
    )


def join() -> Any:
    """Say that this rank has no more data; waits until all have said so.

    Meanwhile it takes part in the allreduces of the others with zeros. Returns the rank that joined last.
    """
    _begin("join")
    return ops.horovod_join()


def barrier(process_set: ProcessSet = global_process_set) -> Any:
    """Wait until all ranks of the set are here.

    Arguments:
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a process set that this rank is not in.
        HorovodInternalError: a lost rank, or no `init`.

    """
    _begin("barrier")
    return ops.horovod_barrier(process_set_id=_set_id(process_set))


def size_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """Return how many ranks the set has when the graph runs; a negative code if there is no such set.

    Arguments:
        process_set_id: the `process_set_id` of a process set; 0 is the global one.
        name: of the operation in the graph.

    """
    return ops.horovod_size(process_set_id=process_set_id, name=name)


def process_set_included_op(process_set_id: int = 0, name: str | None = None) -> Any:
    """Return 1 if this rank is a member of the set when the graph runs, 0 if not, or a negative code.

    Arguments:
        process_set_id: the `process_set_id` of a process set; 0 is the global one.
        name: of the operation in the graph.

    """
    return ops.horovod_process_set_included(process_set_id=process_set_id, name=name)


def local_size_op(name: str | None = None) -> Any:
    """Return how many ranks this host has when the graph runs.

    Arguments:
        name: of the operation in the graph.

    """
    return ops.horovod_local_size(name=name)


def rank_op(name: str | None = None) -> Any:
    """Return the rank of this process when the graph runs.

    Arguments:
        name: of the operation in the graph.

    """
    return ops.horovod_rank(name=name)


def local_rank_op(name: str | None = None) -> Any:
    """Return the rank of this process on its host when the graph runs.

    Arguments:
        name: of the operation in the graph.

    """
    return ops.horovod_local_rank(name=name)


def set_size(process_set: ProcessSet, dtype: Any) -> Any:
    """Return the size of a set as a number of that dtype; asked at run time where it may change."""
    if is_elastic():
        return tf.cast(size_op(_set_id(process_set)), dtype)
    return tf.cast(process_set.size(), dtype)


# At the end, since they are made of the operations above.
from ._gradients import (  # noqa: E402 - see above
    _allgather_grad,  # noqa: F401 - programs use it
    _allreduce_grad,  # noqa: F401 - programs use it
    _alltoall_grad,  # noqa: F401 - programs use it
    _broadcast_grad,  # noqa: F401 - programs use it
    _grouped_allgather_grad,  # noqa: F401 - programs use it
    _grouped_allreduce_grad,  # noqa: F401 - programs use it
    _grouped_reducescatter_grad,  # noqa: F401 - programs use it
    _reducescatter_grad,  # noqa: F401 - programs use it
)
