"""Hands the gradients of parameters to the core, singly or in groups.

The common case, a dense gradient on the host or a GPU, is a submission that was prepared in an earlier step:
its hook costs a few microseconds. All else takes the long way through a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from horovod._core import _native
from horovod._core.codes import ALLREDUCE
from horovod._core.gradients import Gradient
from horovod._core.names import group_names
from horovod._core.process_sets import ProcessSet, registered_id

from ._devices import current_stream, device_of
from ._gradient_buffers import (
    Buffer,
    buffer_for,
    common_layout_like,
    memory_shape,
    write_sparse,
    zero_gradient,
)
from ._gradient_schedule import schedule_for
from ._tensors import DTYPES, refuse
from .mpi_ops import sparse_allreduce_async

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    Finish = Callable[[], None]


@dataclass(slots=True)
class ReduceOptions:
    """How the gradients of one optimizer are combined."""

    op: int
    prescale: float
    postscale: float
    process_set: ProcessSet
    compression: Any
    sparse_as_dense: bool


class Layout(NamedTuple):
    """What a gradient must be like to be submitted as it was prepared."""

    dtype: torch.dtype
    shape: torch.Size
    strides: tuple[int, ...] | None
    """None: contiguous, whatever the strides of dimensions of length 1."""
    device: int
    """Number of the GPU; -1: host memory."""


@dataclass(slots=True, eq=False)
class ParameterGradient(Gradient):
    """The gradient of one parameter, and what the core has prepared for it."""

    parameter: Tensor = field(kw_only=True)
    handle: int | None = None
    prepared: _native.Prepared | None = None
    prepared_for: tuple[object, ...] = ()
    layout: Layout | None = None
    """Of gradients that lie where the core can reduce them; None: take the long way."""
    was_sparse: bool = False
    sent: Tensor | None = None
    """What was the gradient of the parameter when the core got it, and takes the result."""
    memory: torch.UntypedStorage | None = None
    """What the core works on, where that is the memory of `sent`; programs may give that another one."""
    address: int = 0
    """Of the first element, in `memory`."""

    def forget_prepared(self) -> None:
        """Prepare anew with the next submission."""
        self.prepared = self.layout = None
        self.prepared_for = ()


def submit_prepared(gradient: ParameterGradient) -> bool:
    """Submit a gradient as in the steps before; False: it has to take the long way."""
    layout = gradient.layout
    tensor = gradient.parameter.grad
    if (
        layout is None
        or tensor is None
        or tensor.layout is not torch.strided
        or tensor.dtype is not layout[0]
        or tensor.get_device() != layout[3]
        or tensor.shape != layout[1]
        or not (tensor.is_contiguous() if layout[2] is None else tensor.stride() == layout[2])
    ):
        return False
    address = tensor.data_ptr()
    memory = tensor.untyped_storage()
    stream = current_stream(layout[3])
    try:
        gradient.handle = gradient.prepared.submit(address, address, memory, stream)  # type: ignore[union-attr]
    except ValueError:
        # Prepared for a job or a process set that is gone; any other reason will come again.
        gradient.forget_prepared()
        return False
    gradient.sent, gradient.memory, gradient.address = tensor, memory, address
    gradient.submitted = True
    return True


def submit_anew(gradient: ParameterGradient, options: ReduceOptions) -> list[Finish]:
    """Submit a gradient of any kind; returns what is to be done with the result."""
    tensor = gradient_of(gradient)
    if tensor.is_sparse and not options.sparse_as_dense:
        return [_submit_sparse(gradient, tensor, options)]
    buffer = _buffer_of(gradient, tensor, options)
    shape = memory_shape(buffer.tensor)
    device = device_of(buffer.tensor)
    stream = current_stream(device)
    key = (buffer.tensor.dtype, tuple(shape), buffer.wire_dtype, device)
    if gradient.prepared is None or gradient.prepared_for != key:
        gradient.prepared = _prepare(gradient, buffer, shape, options)
        gradient.prepared_for = key
        gradient.layout = None
    address = buffer.tensor.data_ptr()
    memory = buffer.tensor.untyped_storage()
    try:
        gradient.handle = gradient.prepared.submit(address, address, memory, stream)
    except ValueError:
        gradient.prepared = _prepare(gradient, buffer, shape, options)
        gradient.handle = gradient.prepared.submit(address, address, memory, stream)
    gradient.submitted = True
    _remember(gradient, tensor, buffer)
    if buffer.finish is not None:
        return [buffer.finish]
    if buffer.tensor is tensor:
        strides = None if tensor.is_contiguous() else tensor.stride()
        gradient.layout = Layout(tensor.dtype, tensor.shape, strides, device)
    return []


def submit_group(
    gradients: Sequence[ParameterGradient], options: ReduceOptions
) -> tuple[list[int], list[Finish]]:
    """Submit gradients as one operation; returns handles, and what is to be done with the results.

    Sparse gradients and gradients that need another wire dtype cannot be part of it, and go alone.
    """
    finishes: list[Finish] = []
    parts: dict[tuple[int, int], list[tuple[ParameterGradient, Buffer]]] = {}
    for gradient in gradients:
        tensor = gradient_of(gradient)
        if tensor.is_sparse and not options.sparse_as_dense:
            finishes.append(_submit_sparse(gradient, tensor, options))
        else:
            buffer = _buffer_of(gradient, tensor, options)
            _remember(gradient, tensor, buffer)
            parts.setdefault((buffer.wire_dtype, device_of(buffer.tensor)), []).append((gradient, buffer))
    handles = [_submit_part(part, wire, options) for (wire, _), part in parts.items()]
    finishes += [buffer.finish for part in parts.values() for _, buffer in part if buffer.finish is not None]
    return handles, finishes


def gradient_of(gradient: ParameterGradient) -> Tensor:
    """Return the gradient to submit; zeros where the graph of this rank left the parameter out.

    A parameter that needs no gradient now keeps none, or the optimizer would move it.
    """
    parameter = gradient.parameter
    tensor = parameter.grad
    if tensor is not None:
        gradient.was_sparse = tensor.is_sparse
        return tensor
    tensor = zero_gradient(parameter, sparse=gradient.was_sparse)
    if parameter.requires_grad:
        parameter.grad = tensor
    return tensor


def _remember(gradient: ParameterGradient, tensor: Tensor, buffer: Buffer) -> None:
    gradient.sent = tensor
    if buffer.finish is None:
        gradient.memory, gradient.address = buffer.tensor.untyped_storage(), buffer.tensor.data_ptr()


def put_in_place(gradient: ParameterGradient) -> None:
    """Make the result the gradient of the parameter, whatever the program made of that meanwhile.

    Otherwise a gradient that was replaced between backward() and step() would be that of this rank alone.
    A gradient that was taken away stays away.
    """
    sent = gradient.sent
    if sent is None:
        return
    parameter = gradient.parameter
    if gradient.memory is not None and sent.data_ptr() != gradient.address:
        form = common_layout_like(sent, parameter)
        offset = (gradient.address - gradient.memory.data_ptr()) // sent.element_size()
        with torch.no_grad():
            sent.set_(gradient.memory, offset, form.shape, form.stride())
    if parameter.grad is not sent and parameter.grad is not None:
        parameter.grad = sent


def forget_sent(gradient: ParameterGradient) -> None:
    """Let go of the gradient and its memory."""
    gradient.sent = gradient.memory = None


def _submit_part(part: Sequence[tuple[ParameterGradient, Buffer]], wire: int, options: ReduceOptions) -> int:
    names = group_names("allreduce", part[0][0].name, len(part))
    tensors = [buffer.tensor for _, buffer in part]
    handle = _native.submit_group(
        kind=ALLREDUCE,
        reduce_op=options.op,
        process_set=registered_id(options.process_set),
        wire_dtype=wire,
        progress=schedule_for(part[0][0].parameter.device).progress,
        prescale=options.prescale,
        postscale=options.postscale,
        tensors=[
            (DTYPES[tensor.dtype], memory_shape(tensor), tensor.data_ptr(), tensor.data_ptr(), name)
            for tensor, name in zip(tensors, names, strict=True)
        ],
        owner=[tensor.untyped_storage() for tensor in tensors],
        device=device_of(tensors[0]),
        stream=current_stream(device_of(tensors[0])),
    )
    for gradient, _ in part:
        gradient.handle = handle
        gradient.submitted = True
    return handle


def _submit_sparse(gradient: ParameterGradient, tensor: Tensor, options: ReduceOptions) -> Finish:
    wait = sparse_allreduce_async(tensor, name=gradient.name, op=options.op, process_set=options.process_set)
    gradient.sent = tensor
    gradient.submitted = True
    return lambda: write_sparse(tensor, wait())


def _buffer_of(gradient: ParameterGradient, tensor: Tensor, options: ReduceOptions) -> Buffer:
    buffer = buffer_for(gradient.parameter, tensor, options.compression, options.op)
    if buffer.tensor.dtype not in DTYPES:
        message = f"the gradient of '{gradient.name}': {refuse(buffer.tensor)}"
        raise ValueError(message)
    return buffer


def _prepare(
    gradient: ParameterGradient, buffer: Buffer, shape: Sequence[int], options: ReduceOptions
) -> _native.Prepared:
    return _native.Prepared(
        kind=ALLREDUCE,
        dtype=DTYPES[buffer.tensor.dtype],
        reduce_op=options.op,
        process_set=registered_id(options.process_set),
        wire_dtype=buffer.wire_dtype,
        progress=schedule_for(gradient.parameter.device).progress,
        shape=shape,
        prescale=options.prescale,
        postscale=options.postscale,
        name=f"allreduce.{gradient.name}",
        device=device_of(buffer.tensor),
    )
