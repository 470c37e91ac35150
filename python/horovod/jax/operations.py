"""The collectives, on arrays and on pytrees of arrays, inside and outside of jit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from horovod._core import _native, codes
from horovod._core.average import resolve_op
from horovod._core.process_sets import ProcessSet, global_process_set, registered_id

from . import _eager, _work
from ._checks import check_place, check_reduction, members
from ._leaves import as_plain, is_traced, restored
from ._primitive import bind
from ._spec import Collective, name_in_program
from .compression import Compression, Compressor


def _collective(
    kind: int, operation: str, arrays: Sequence[Any], name: str | None, process_set: ProcessSet, **how: Any
) -> list[Any]:
    """Run one operation on arrays of numbers: a group unless there is one only."""
    size, rank = members(operation, process_set)
    check_place(operation)
    is_group = len(arrays) > 1
    word = f"grouped_{operation}" if is_group else operation
    traced = is_traced(arrays)
    is_named_by_us = name is None and traced
    spec = Collective(
        kind=kind,
        operation=operation,
        process_set=registered_id(process_set),
        set_size=size,
        set_rank=rank,
        name=name_in_program(word, arrays, process_set) if is_named_by_us else name and f"{word}.{name}",
        is_named_by_us=is_named_by_us,
        is_group=is_group,
        in_place=traced and kind in (codes.ALLREDUCE, codes.BROADCAST),
        **how,
    )
    return bind(arrays, spec)


# ---- reductions


def _reduce_leaves(
    leaves: Sequence[Any],
    name: str | None,
    op: int,
    compression: type[Compressor],
    prescale: float,
    postscale: float,
    process_set: ProcessSet,
) -> list[Any]:
    """Reduce leaves together; those that travel in another dtype are an operation of their own."""
    plain, restores = [], []
    for leaf in leaves:
        array, restore = as_plain("allreduce", leaf)
        check_reduction("allreduce", jnp.asarray(leaf).dtype, op, prescale, postscale)
        plain.append(array)
        restores.append(restore)
    results: list[Any] = [None] * len(plain)
    by_wire: dict[int, list[int]] = {}
    for index, array in enumerate(plain):
        by_wire.setdefault(compression.wire_for(array, op), []).append(index)
    for number, (wire, places) in enumerate(by_wire.items()):
        reduced = _collective(
            codes.ALLREDUCE,
            "allreduce",
            [plain[index] for index in places],
            name if name is None or number == 0 else f"{name}.{number}",
            process_set,
            op=op,
            prescale=prescale,
            postscale=postscale,
            wire=wire,
        )
        for index, result in zip(places, reduced, strict=True):
            results[index] = result
    return restored(results, restores)


def allreduce(
    tensor: Any,
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Combine an array, or every array of a pytree, of all ranks; Average unless `op` says otherwise.

    The arrays of a pytree are one operation. The gradient is the same operation on the cotangents.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    leaves, tree = jax.tree_util.tree_flatten(tensor)
    reduce_op = resolve_op(op, average)
    if not leaves:
        return tensor
    reduced = _reduce_leaves(
        leaves, name, reduce_op, compression, float(prescale_factor), float(postscale_factor), process_set
    )
    return jax.tree_util.tree_unflatten(tree, reduced)


def grouped_allreduce(
    tensors: Sequence[Any],
    average: bool | None = None,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    op: int | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[Any]:
    """Combine several arrays as one operation.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allreduce.
        average: old form of `op`: True is Average, False is Sum. Not together with `op`.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        op: Average (also if None), Sum, Min, Max, Product or Adasum.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    listed = _at_least_one("grouped_allreduce", tensors)
    reduce_op = resolve_op(op, average)
    return list(
        allreduce(
            listed,
            name=name,
            compression=compression,
            op=reduce_op,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
            process_set=process_set,
        )
    )


def _at_least_one(operation: str, tensors: Sequence[Any]) -> list[Any]:
    listed = list(tensors)
    if not listed:
        message = f"{operation}: expected at least one array, got none"
        raise ValueError(message)
    return listed


def _with_rows(operation: str, leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    pairs = [as_plain(operation, leaf) for leaf in leaves]
    for leaf in leaves:
        if jnp.ndim(leaf) == 0:
            message = f"{operation}: a scalar has no rows, expected at least one dimension"
            raise ValueError(message)
    return [array for array, _ in pairs], [restore for _, restore in pairs]


def reducescatter(
    tensor: Any,
    op: int = codes.AVERAGE,
    name: str | None = None,
    compression: type[Compressor] = Compression.none,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Combine arrays of all ranks, and return this rank's rows of the result.

    Where rows do not divide by the ranks, the first ranks have one more.

    Arguments:
        tensor: what this rank adds; of one shape and dtype on all ranks. Needs at least one
            dimension.
        op: Average or Sum.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        compression: the dtype in which floats travel and are summed: Compression.none,
            Compression.fp16 or Compression.bf16.
        prescale_factor: multiplies what this rank sends.
        postscale_factor: multiplies the result.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    leaves, tree = jax.tree_util.tree_flatten(tensor)
    if not leaves:
        return tensor
    arrays, restores = _with_rows("reducescatter", leaves)
    for leaf in leaves:
        check_reduction("reducescatter", jnp.asarray(leaf).dtype, op, prescale_factor, postscale_factor)
    results = _collective(
        codes.REDUCESCATTER,
        "reducescatter",
        [compression.converted(array, op) for array in arrays],
        name,
        process_set,
        op=op,
        prescale=float(prescale_factor),
        postscale=float(postscale_factor),
    )
    results = [
        result if result.dtype == array.dtype else result.astype(array.dtype)
        for result, array in zip(results, arrays, strict=True)
    ]
    return jax.tree_util.tree_unflatten(tree, restored(results, restores))


def grouped_reducescatter(tensors: Sequence[Any], op: int = codes.AVERAGE, **options: Any) -> list[Any]:
    """Combine several arrays as one operation, and return this rank's rows of each.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of reducescatter.
        op: Average or Sum.
        **options: name, compression, prescale_factor, postscale_factor, process_set of reducescatter.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    return list(reducescatter(_at_least_one("grouped_reducescatter", tensors), op, **options))


# ---- movement


def allgather(tensor: Any, name: str | None = None, process_set: ProcessSet = global_process_set) -> Any:
    """Concatenate the arrays of all ranks along the first dimension.

    Outside of jit ranks may have different numbers of rows. Inside, shapes are known before the program
    runs, and every rank gives as many: a rank with others ends with an error.

    Arguments:
        tensor: its rows; the first dimension may differ between ranks, the others not.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    leaves, tree = jax.tree_util.tree_flatten(tensor)
    if not leaves:
        return tensor
    arrays, restores = _with_rows("allgather", leaves)
    size, _ = members("allgather", process_set)
    if is_traced(arrays):
        rows = tuple(size * array.shape[0] for array in arrays)
        results = _collective(codes.ALLGATHER, "allgather", arrays, name, process_set, rows=rows)
    else:
        check_place("allgather")
        results = _eager.allgather(arrays, name, process_set)
    return jax.tree_util.tree_unflatten(tree, restored(results, restores))


def grouped_allgather(
    tensors: Sequence[Any], name: str | None = None, process_set: ProcessSet = global_process_set
) -> list[Any]:
    """Gather several arrays as one operation.

    Arguments:
        tensors: a list; as many on every rank. Each is like that of allgather.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    return list(allgather(_at_least_one("grouped_allgather", tensors), name, process_set))


def broadcast(
    tensor: Any, root_rank: int, name: str | None = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Return the arrays of the root, a global rank, on every rank; shapes are the same everywhere.

    Arguments:
        tensor: what the root sends; of the same shape and dtype on the others.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    leaves, tree = jax.tree_util.tree_flatten(tensor)
    if not leaves:
        return tensor
    pairs = [as_plain("broadcast", leaf) for leaf in leaves]
    arrays = [array for array, _ in pairs]
    names = [name if name is None or len(arrays) == 1 else f"{name}.{i}" for i in range(len(arrays))]
    if is_traced(arrays):
        results = [
            _collective(codes.BROADCAST, "broadcast", [array], label, process_set, root_rank=int(root_rank))[
                0
            ]
            for array, label in zip(arrays, names, strict=True)
        ]
    else:
        check_place("broadcast")
        results = _eager.broadcast(arrays, int(root_rank), names, process_set)
    return jax.tree_util.tree_unflatten(tree, restored(results, [restore for _, restore in pairs]))


def alltoall(
    tensor: Any,
    splits: Any = None,
    name: str | None = None,
    process_set: ProcessSet = global_process_set,
    *,
    received_splits: Sequence[int] | None = None,
) -> Any:
    """Send splits[i] rows to rank i of the set, and return what the others sent here.

    Without splits every rank gets as many rows; with splits the result is (output, received splits). Inside
    jit both are part of the program: integers, and `received_splits` says what the others send.

    Arguments:
        tensor: rows for the ranks of the set, in rank order.
        splits: how many rows each rank gets, in rank order: one integer per rank of the
            set. None: the same number each.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        process_set: the ranks that take part, all of which must call this.
        received_splits: how many rows come from each rank; needed inside of jit with
            `splits`, where shapes must be known.

    Raises:
        ValueError: a value that is refused, or a process set that this rank is not in.
        TypeError: a dtype that is refused.
        HorovodInternalError: ranks that do not fit together, or a lost rank; inside of jit
            it comes as jax.errors.JaxRuntimeError.

    """
    (array,), (restore,) = _with_rows("alltoall", [tensor])
    size, _ = members("alltoall", process_set)
    if not is_traced([array]) and not isinstance(splits, jax.core.Tracer):
        check_place("alltoall")
        output, received = _eager.alltoall(array, splits, name, process_set)
        output = restored([output], [restore])[0]
        return output if splits is None else (output, received)
    sent, expected = _static_splits(array.shape[0], size, splits, received_splits)
    (output,) = _collective(
        codes.ALLTOALL, "alltoall", [array], name, process_set, splits=sent, received=expected
    )
    output = restored([output], [restore])[0]
    return output if splits is None else (output, jnp.asarray(expected, jnp.int32))


def _static_splits(
    rows: int, size: int, splits: Any, received: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if splits is None:
        if rows % size:
            message = f"alltoall: {rows} rows cannot be divided evenly among {size} ranks; give splits"
            raise ValueError(message)
        return (), ()
    if isinstance(splits, jax.core.Tracer) or received is None:
        message = (
            "alltoall: inside jit, splits and received_splits must both be known before the program runs "
            "(tuples of integers); outside of jit, splits alone are enough"
        )
        raise ValueError(message)
    sent, expected = (tuple(int(rows) for rows in np.asarray(given)) for given in (splits, received))
    if len(sent) != size or len(expected) != size or sum(sent) != rows:
        message = (
            f"alltoall: splits {sent} and received_splits {expected} need {size} entries each, "
            f"and splits must sum to the {rows} rows of the array"
        )
        raise ValueError(message)
    return sent, expected


# ---- meetings


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until every rank of the set has come here.

    Outside of jit: what was dispatched before may still be running; block on results first to wait for it.
    Inside: some time in the program, in no order with operations that it does not depend on.

    Arguments:
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a process set that this rank is not in.
        HorovodInternalError: a lost rank, or no `init`.

    """
    if is_traced(()):
        _collective(codes.BARRIER, "barrier", [], None, process_set)
        return
    members("barrier", process_set)
    _native.barrier(registered_id(process_set), None)


def join() -> int:
    """Say that this rank has no more data, and return the last rank that said so.

    Blocks until all have; steps that were dispatched are finished first. Meanwhile this rank takes part in
    the reductions of the others, with zeros.
    """
    if is_traced(()):
        message = "join: call it outside of jit, after the last step of this rank"
        raise ValueError(message)
    _work.finish()
    return _native.join(None)
