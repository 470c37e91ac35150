"""What the collectives of one group share: its members, its time limit and how to submit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from torch.distributed import DistBackendError

from horovod._core import _native, codes
from horovod.torch._devices import HOST
from horovod.torch.distributed._futures import complete_by_helper, complete_here
from horovod.torch.distributed._origin import Origin, origin_on
from horovod.torch.distributed._work import CompletedWork, PendingWork, late

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import torch
    from torch.distributed import Work

    Finish = Callable[[int], None]

_UNSET = timedelta(0)  # torch's own mark for "not given" is negative

# hvd_progress of hvd.h
PROGRESS_DEFAULT = 0
PROGRESS_BACKGROUND = 3

# Below, an operation is one message, and complete when the last rank has submitted it.
LARGE_ELEMENT_COUNT = 16384


@dataclass(frozen=True)
class Members:
    """The processes of a group: global ranks in the order of their ranks in the group."""

    process_set: int
    ranks: tuple[int, ...]
    key: str

    @cached_property
    def positions(self) -> list[int] | None:
        """For each group rank its place in the core's set, which is sorted; None: the same."""
        ascending = sorted(self.ranks)
        if ascending == list(self.ranks):
            return None
        return [ascending.index(rank) for rank in self.ranks]


@dataclass
class Operation:
    """One submission: `shape` of the input, addresses, and what becomes of the output."""

    kind: int
    dtype: int
    shape: Sequence[int]
    input: int
    output: int
    owner: object
    outputs: list[torch.Tensor]
    finish: Finish | None = None
    reduce_op: int = codes.SUM
    root: int = 0
    factor: float = 1.0
    splits: Sequence[int] | None = None
    name: str | None = None
    device: int = HOST


@dataclass
class Group:
    """A group as its collectives see it."""

    members: Members
    rank: int
    seconds: float
    waits_in_backward: bool
    """A thread that asks for a future during backward (DDP does) waits for the operation."""
    sequence: int = 0
    coalesced: list[Work] | None = field(default=None)

    @property
    def size(self) -> int:
        return len(self.members.ranks)

    def progress(self, element_count: int, opts: Any) -> int:
        """Who makes the operation advance.

        The background thread, for anything large that the caller does not wait for at once. Also
        where cores are busy: a thread that has computed all the time is the last to be scheduled,
        one that has slept the first.
        """
        if element_count < LARGE_ELEMENT_COUNT or not getattr(opts, "asyncOp", True):
            return PROGRESS_DEFAULT
        return PROGRESS_BACKGROUND

    def seconds_of(self, opts: Any) -> float:
        """The time limit of a call: its own, or the group's."""
        given = getattr(opts, "timeout", _UNSET)
        return given.total_seconds() if given > _UNSET else self.seconds

    def submit(self, operation: Operation, opts: Any) -> Work:
        """Starts the operation; a call that is not asynchronous also ends here."""
        origin = origin_on(operation.device)
        handle = _native.submit(
            kind=operation.kind,
            dtype=operation.dtype,
            reduce_op=operation.reduce_op,
            process_set=self.members.process_set,
            root_rank=operation.root,
            progress=self.progress(math.prod(operation.shape), opts),
            shape=operation.shape,
            input=operation.input,
            output=operation.output,
            prescale=operation.factor,
            splits=operation.splits,
            name=operation.name,
            owner=operation.owner,
            device=operation.device,
            stream=0 if origin is None else origin.handle,
        )
        return self.started(handle, operation.outputs, operation.finish, opts, origin)

    def submit_many(
        self,
        kind: int,
        tensors: Sequence[tuple[int, Sequence[int], int, int, str | None]],
        owner: object,
        outputs: list[torch.Tensor],
        finish: Finish | None,
        opts: Any,
        reduce_op: int = codes.SUM,
        factor: float = 1.0,
        device: int = HOST,
    ) -> Work:
        """One operation of many tensors on one device: (dtype, shape, input, output, name) each."""
        if not tensors:
            return CompletedWork(outputs)
        origin = origin_on(device)
        handle = _native.submit_group(
            kind=kind,
            reduce_op=reduce_op,
            process_set=self.members.process_set,
            progress=self.progress(sum(math.prod(tensor[1]) for tensor in tensors), opts),
            prescale=factor,
            tensors=tensors,
            owner=owner,
            device=device,
            stream=0 if origin is None else origin.handle,
        )
        return self.started(handle, outputs, finish, opts, origin)

    def started(
        self,
        handle: int,
        outputs: list[torch.Tensor],
        finish: Finish | None,
        opts: Any,
        origin: Origin | None,
    ) -> Work:
        """`origin`: the stream that is current now, for operations on a GPU."""
        self.sequence += 1
        seconds = self.seconds_of(opts)
        if getattr(opts, "asyncOp", True) or self.coalesced is not None:
            complete = complete_here if self.waits_in_backward else complete_by_helper
            work: Work = PendingWork(handle, outputs, seconds, finish, complete, origin)
            if self.coalesced is not None:
                self.coalesced.append(work)
            return work
        try:
            if not _native.wait(handle, seconds):
                raise DistBackendError(late(seconds))
            if finish is not None:
                finish(handle)
        finally:
            _native.release(handle)
        return CompletedWork(outputs)
