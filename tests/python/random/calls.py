"""The calls of horovod.torch that operations of a program stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from contents import object_of
from program import Form, Kind, Operation

import horovod.torch as hvd

_COMPRESSION = {None: hvd.Compression.none, "fp16": hvd.Compression.fp16, "bf16": hvd.Compression.bf16}
_SUFFIX = {
    Form.ASYNC: "_async",
    Form.ASYNC_IN_PLACE: "_async_",
    Form.BLOCKING: "",
    Form.BLOCKING_IN_PLACE: "_",
}


def call_tensors(
    operation: Operation,
    form: Form,
    tensors: Sequence[torch.Tensor],
    place: int,
    process_set: hvd.ProcessSet,
) -> Any:
    """Start an operation on the tensors of the member at `place`: a handle or a result comes back."""
    name = f"{'grouped_' if operation.grouped else ''}{operation.kind.value}{_SUFFIX[form]}"
    function: Callable[..., Any] = getattr(hvd, name)
    arguments: dict[str, Any] = {"name": operation.name, "process_set": process_set}
    if operation.kind in {Kind.ALLREDUCE, Kind.REDUCESCATTER}:
        arguments["op"] = getattr(hvd, operation.reduce)
        arguments["prescale_factor"] = operation.prescale
        arguments["postscale_factor"] = operation.postscale
    if operation.wire is not None:
        arguments["compression"] = _COMPRESSION[operation.wire]
    if operation.kind is Kind.BROADCAST:
        arguments["root_rank"] = operation.root
    if operation.splits is not None:
        arguments["splits"] = torch.tensor(operation.splits[place], dtype=torch.int32)
    return function(list(tensors) if operation.grouped else tensors[0], **arguments)


def call_objects(operation: Operation, rank: int, process_set: hvd.ProcessSet) -> object:
    """Run an operation on Python objects."""
    mine = object_of(operation, rank)
    if operation.kind is Kind.ALLGATHER_OBJECT:
        return hvd.allgather_object(mine, name=operation.name, process_set=process_set)
    return hvd.broadcast_object(mine, operation.root, name=operation.name, process_set=process_set)


def tensors_of_result(operation: Operation, result: Any) -> list[torch.Tensor]:
    """What came back, as a list: of alltoall, the splits too if they were returned."""
    if operation.grouped or isinstance(result, tuple):
        return list(result)
    return [result]
