"""Parameters laid out in flat buffers of which every rank owns an equal part.

Each parameter becomes a view of its bucket's buffer, so that what the owners compute arrives in the
parameters without a copy. Gradients pass through one buffer that all buckets share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from horovod._core import _native, codes

from ._devices import current_stream, device_of, is_direct, order
from ._tensors import DTYPES

# Large enough for full speed, small enough that the buffer for gradients does not count.
BUCKET_BYTES = 16 << 20


@dataclass(frozen=True)
class Part:
    """Where the optimizer's set of ranks is cut."""

    process_set: int
    rank: int
    size: int


def _like(parameter: torch.Tensor, flat: torch.Tensor, offset: int) -> torch.Tensor:
    """A view of the flat buffer with the parameter's shape, and its strides if they are dense."""
    piece = flat.narrow(0, offset, parameter.numel())
    if parameter.is_contiguous():
        return piece.view(parameter.shape)
    filled = torch.empty_like(parameter)  # keeps the order of dimensions, drops gaps
    return piece.as_strided(filled.shape, filled.stride(), piece.storage_offset())


class Bucket:
    """Parameters of one group, dtype and device in one flat buffer."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter], part: Part) -> None:
        """Move the parameters into the buffer."""
        self.parameters = list(parameters)
        self.part = part
        self.offsets: list[int] = []
        count = 0
        for parameter in self.parameters:
            self.offsets.append(count)
            count += parameter.numel()
        self.count = count
        self.shard_count = -(-count // part.size) if count else 0
        first = self.parameters[0]
        self.flat = torch.zeros(self.shard_count * part.size, dtype=first.dtype, device=first.device)
        self.views = self.views_of(self.flat)
        self.adopt()
        begin = self.shard_count * part.rank
        self.shard = torch.nn.Parameter(self.flat.narrow(0, begin, self.shard_count))
        self.begin = begin

    def views_of(self, flat: torch.Tensor) -> list[torch.Tensor]:
        """The parameters' places in a buffer of this layout."""
        return [
            _like(parameter, flat, offset)
            for parameter, offset in zip(self.parameters, self.offsets, strict=True)
        ]

    @torch.no_grad()
    def adopt(self) -> None:
        """Bring parameters whose storage somebody has replaced back into the buffer."""
        for parameter, view in zip(self.parameters, self.views, strict=True):
            if parameter.data_ptr() == view.data_ptr():
                continue
            if parameter.dtype != view.dtype or parameter.device != view.device:
                message = (
                    f"ShardedOptimizer: a parameter of shape {tuple(parameter.shape)} has become "
                    f"{parameter.dtype} on {parameter.device}, it was {view.dtype} on "
                    f"{view.device}; wrap the optimizer after the model has been converted"
                )
                raise ValueError(message)
            view.copy_(parameter)
            parameter.data = view

    @torch.no_grad()
    def reduce_gradients(self, buffer: torch.Tensor, op: int) -> None:
        """Give the shard the gradient that all ranks agree on; buffer is scratch space."""
        flat = buffer.narrow(0, 0, self.flat.numel())
        flat.narrow(0, self.count, self.flat.numel() - self.count).zero_()
        views, gradients = [], []
        for parameter, view in zip(self.parameters, self.views_of(flat), strict=True):
            if parameter.grad is None:
                view.zero_()
            else:
                grad = parameter.grad
                views.append(view)
                gradients.append(grad.to_dense() if grad.layout is not torch.strided else grad)
        if views:
            torch._foreach_copy_(views, gradients)
        if self.shard.grad is None:
            self.shard.grad = torch.empty_like(self.shard)
        run(codes.REDUCESCATTER, flat, self.shard.grad, (self.part.size, self.shard_count), self.part, op)

    @torch.no_grad()
    def gather(self, mine: torch.Tensor) -> torch.Tensor:
        """A flat tensor of all ranks' parts."""
        whole = mine.new_empty(self.shard_count * self.part.size)
        run(codes.ALLGATHER, mine.contiguous(), whole, (1, self.shard_count), self.part)
        return whole

    @torch.no_grad()
    def share_parameters(self) -> None:
        """Bring what the other owners have computed into the parameters."""
        run(codes.ALLGATHER, self.shard, self.flat, (1, self.shard_count), self.part)


def run(
    kind: int,
    source: torch.Tensor,
    target: torch.Tensor,
    shape: tuple[int, int],
    part: Part,
    op: int = codes.SUM,
) -> None:
    """One operation of the core on plain tensors: in the memory of the device, if the core reaches it."""
    if not source.is_cpu and is_direct(source):
        _run_on_device(kind, source, target, shape, part, op)
        return
    host = source.detach().cpu()
    output = target if target.is_cpu else torch.empty_like(target, device="cpu")
    if source.numel():
        _native.run(
            kind=kind,
            dtype=DTYPES[host.dtype],
            reduce_op=op,
            process_set=part.process_set,
            shape=shape,
            input=host.data_ptr(),
            output=output.data_ptr(),
            owner=(host, output),
        )
    if output is not target:
        target.copy_(output)


def _run_on_device(
    kind: int,
    source: torch.Tensor,
    target: torch.Tensor,
    shape: tuple[int, int],
    part: Part,
    op: int,
) -> None:
    if not source.numel():
        return
    device = device_of(source)
    handle = _native.submit(
        kind=kind,
        dtype=DTYPES[source.dtype],
        reduce_op=op,
        process_set=part.process_set,
        shape=shape,
        input=source.data_ptr(),
        output=target.data_ptr(),
        owner=(source, target),
        device=device,
        stream=current_stream(device),
    )
    try:
        _native.wait(handle, None)
        order(handle, target, device)
    finally:
        _native.release(handle)


def make_buckets(parameters: Iterable[torch.nn.Parameter], part: Part) -> list[Bucket]:
    """Cut a group's parameters into buckets: one dtype and device each, about BUCKET_BYTES."""
    open_lists: dict[tuple[torch.dtype, torch.device], list[torch.nn.Parameter]] = {}
    sizes: dict[tuple[torch.dtype, torch.device], int] = {}
    buckets = []
    for parameter in parameters:
        if not parameter.requires_grad:
            continue
        kind = (parameter.dtype, parameter.device)
        byte_count = parameter.numel() * parameter.element_size()
        if kind in open_lists and sizes[kind] + byte_count > BUCKET_BYTES:
            buckets.append(Bucket(open_lists.pop(kind), part))
        open_lists.setdefault(kind, []).append(parameter)
        sizes[kind] = byte_count if len(open_lists[kind]) == 1 else sizes[kind] + byte_count
    buckets.extend(Bucket(members, part) for members in open_lists.values())
    return buckets
