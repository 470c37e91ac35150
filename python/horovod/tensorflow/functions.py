"""Bringing variables and objects to the same state on all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from horovod._core import objects
from horovod._core.process_sets import ProcessSet, global_process_set

from .mpi_ops import broadcast, broadcast_
from .util import _executing_eagerly, normalize_name, refs_to_vars, vars_to_refs

_MOST_ASSIGNERS = 16

_assigners: dict[Any, Any] = {}
"""Graphs that broadcast a set of variables, the latest ones; each keeps its variables alive."""


def _broadcast_and_assign(
    variables: Iterable[Any], root_rank: int, process_set: ProcessSet, *, inplace: bool
) -> Any:
    """Return an op that gives the variables the root's values."""
    listed = list(variables)
    if inplace:
        return tf.group(*broadcast_(listed, root_rank, process_set=process_set))
    assigned = []
    for index, variable in enumerate(listed):
        label = f"HorovodBroadcast_{index}_{normalize_name(str(getattr(variable, 'name', '')))}"
        value = broadcast(tf.convert_to_tensor(variable), root_rank, label, process_set=process_set)
        assigned.append(variable.assign(value))
    return tf.group(*assigned)


def _assigner(refs: tuple[Any, ...], root_rank: int, process_set: ProcessSet, inplace: bool) -> Any:
    """Return a graph for these variables, made when they are first broadcast."""
    key = (refs, root_rank, process_set.process_set_id, inplace)
    found = _assigners.get(key)
    if found is None:

        def assign() -> None:
            _broadcast_and_assign(refs_to_vars(refs), root_rank, process_set, inplace=inplace)

        found = tf.function(assign)
        if len(_assigners) >= _MOST_ASSIGNERS:
            _assigners.pop(next(iter(_assigners)))
        _assigners[key] = found
    return found


def broadcast_variables(
    variables: Iterable[Any],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
    inplace: bool = False,
) -> Any:
    """Overwrite variables with those of the root rank.

    Eagerly it happens now, and the result is None; in a graph the result is an op that does it.

    Arguments:
        variables: those to overwrite, in the same order on every rank.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        process_set: the ranks that take part, all of which must call this.
        inplace: write into the variables without a copy, grouped by device.

    Raises:
        tf.errors.FailedPreconditionError: ranks that do not fit together (shape, dtype,
            options), or no `init`.
        tf.errors.InvalidArgumentError: what this rank alone can see, such as a set it is
            not in.
        tf.errors.UnknownError: a lost rank, or one that has shut down.

    """
    listed = [_tensorflow_variable(variable) for variable in variables]
    if not _executing_eagerly():
        return _broadcast_and_assign(listed, root_rank, process_set, inplace=inplace)
    if listed:
        _assigner(vars_to_refs(listed), root_rank, process_set, inplace)()
    return None


def _tensorflow_variable(variable: Any) -> Any:
    """Return the tf.Variable behind a variable of Keras 3, or the variable itself."""
    value = getattr(variable, "value", None)
    return value if isinstance(value, tf.Variable) else variable


def broadcast_global_variables(root_rank: int) -> Any:
    """Return an op that gives all global variables the values of the root; for graphs of TensorFlow 1.

    Arguments:
        root_rank: the rank whose value counts; a global rank, also in a process set.

    Raises:
        RuntimeError: in eager execution.

    """
    if _executing_eagerly():
        message = (
            "hvd.broadcast_global_variables() does not support eager execution. Please use "
            "`hvd.broadcast_variables(<model/optimizer variables>)` instead."
        )
        raise RuntimeError(message)
    return broadcast_variables(tf.compat.v1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Gives all ranks the variables of the root when a session of TensorFlow 1 begins.

    Needed wherever ranks begin with random weights, or with a checkpoint that only one of them has read.

    Arguments:
        root_rank: the rank whose value counts; a global rank, also in a process set.
        device: where TensorFlow places the operations.

    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        """Remember the root and the device that broadcasts."""
        super().__init__()
        self.root_rank = root_rank
        self.bcast_op: Any = None
        self.device = device

    def begin(self) -> None:
        """Make the op, once per graph."""
        graph = tf.compat.v1.get_default_graph()
        if self.bcast_op is None or self.bcast_op.graph is not graph:
            with tf.device(self.device):
                self.bcast_op = broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Run it."""
        del coord
        session.run(self.bcast_op)


def broadcast_object(
    obj: Any = None,
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Return the object of the root rank on every rank; pickled by cloudpickle. It needs no session.

    Arguments:
        obj: anything that cloudpickle can pickle.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        session: accepted for programs of TensorFlow 1; not needed.
        name: what ranks match the call by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    del session
    return objects.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(
    root_rank: int = 0,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> Callable[[Any], Any]:
    """Return a function that broadcasts its argument; what it needs is made once.

    Arguments:
        root_rank: the rank whose value counts; a global rank, also in a process set.
        session: accepted for programs of TensorFlow 1; not needed.
        name: what ranks match the call by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    del session
    label = name or "broadcast_object_fn"

    def broadcast_it(obj: Any = None) -> Any:
        return objects.broadcast_object(obj, root_rank, label, process_set)

    return broadcast_it


def allgather_object(
    obj: Any,
    session: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Return the objects of all ranks in rank order; pickled by cloudpickle. It needs no session.

    Arguments:
        obj: anything that cloudpickle can pickle.
        session: accepted for programs of TensorFlow 1; not needed.
        name: what ranks match the call by; without one they match by order.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        HorovodInternalError: a lost rank, or no `init`.

    """
    del session
    return objects.allgather_object(obj, name, process_set)
