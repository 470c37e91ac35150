"""The ProcessGroup that torch sees: it unpacks torch's calling conventions and hands over.

torch calls these methods with lists of one tensor and an options object, from Python by position or
keyword and from C++ by position, and under older names in older releases. torch.compile must not
look inside: it would stumble over handles and addresses.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed import ProcessGroup, ReduceOp

from horovod._core import _native
from horovod._core.schedule import requested_mode
from horovod.torch.distributed import _movement, _reductions
from horovod.torch.distributed._group import Group, Members
from horovod.torch.distributed._monitored_barrier import monitored_barrier
from horovod.torch.distributed._point_to_point import Mail
from horovod.torch.distributed._tracing import invisible_to_compile
from horovod.torch.distributed._work import CompletedWork, JointWork

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store
    from torch.distributed import Work

    Tensor = torch.Tensor

__all__ = ["HorovodProcessGroup", "Members"]

# The stubs of torch know one of the ways in which each method is called; here are all of them.
_Base: Any = ProcessGroup


@invisible_to_compile
class HorovodProcessGroup(_Base):  # type: ignore[misc]
    """A group of processes whose collectives run on this core."""

    supports_splitting = False
    supports_coalescing = False
    supports_time_estimate = False

    def __init__(self, store: Store, rank: int, members: Members, timeout: timedelta) -> None:
        super().__init__(rank, len(members.ranks))
        self._store = store
        self._name = ""
        self._description = ""
        self._bound_device: torch.device | None = None
        self._is_closed = False
        waits = requested_mode(os.environ) == "step"
        self._group = Group(members, rank, timeout.total_seconds(), waits)
        self._mail = Mail(self._group)

    # ---- identity. The base class keeps names in its C++ backends, of which there are none here.

    def getBackendName(self) -> str:  # noqa: N802 - called by C++
        return "horovod"

    _get_backend_name = name = getBackendName

    @property
    def group_name(self) -> str:
        return self._name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:  # noqa: N802 - called by C++
        return self._name

    setGroupName = _set_group_name  # noqa: N815

    @property
    def group_desc(self) -> str:
        return self._description

    def _set_group_desc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:  # noqa: N802 - called by C++
        return self._description

    setGroupDesc = _set_group_desc  # noqa: N815

    @property
    def bound_device_id(self) -> torch.device | None:
        return self._bound_device

    @bound_device_id.setter
    def bound_device_id(self, device: torch.device | None) -> None:
        self._bound_device = device

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def _get_backend(self, device: torch.device) -> HorovodProcessGroup:  # noqa: ARG002
        return self

    def get_group_store(self) -> Store:
        return self._store

    def _set_sequence_number_for_group(self) -> None:
        self._group.sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._group.sequence

    # ---- life

    def set_timeout(self, timeout: timedelta) -> None:
        self._group.seconds = timeout.total_seconds()

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        if self._is_closed or not _native.is_initialized():
            return
        self._is_closed = True
        self._mail.close()
        if self._group.members.process_set > 0:
            _native.process_set_leave(self._group.members.process_set)

    def abort(self) -> None:
        self.shutdown()

    def _has_hooks(self) -> bool:
        return False

    def _wait_for_pending_works(self) -> None:
        """Nothing runs behind torch's back."""

    # ---- reductions

    def allreduce(
        self,
        tensors: list[Tensor] | Tensor,
        opts: Any = None,
        op: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        tensor = tensors if isinstance(tensors, torch.Tensor) else _only(tensors, "allreduce")
        opts = _options(opts, op, timeout)
        return _reductions.allreduce(self._group, tensor, _reduce_op(opts), opts)

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Work:
        return _reductions.allreduce_coalesced(self._group, tensors, _reduce_op(opts), opts)

    def reduce(
        self,
        tensors: list[Tensor] | Tensor,
        opts: Any = None,
        op: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        tensor = tensors if isinstance(tensors, torch.Tensor) else _only(tensors, "reduce")
        root = opts if isinstance(opts, int) else opts.rootRank
        opts = _options(opts, op, timeout)
        return _reductions.reduce(self._group, tensor, root, _reduce_op(opts), opts)

    def reduce_scatter(self, outputs: list[Tensor] | Tensor, inputs: list[Any], opts: Any = None) -> Work:
        output = outputs if isinstance(outputs, torch.Tensor) else _only(outputs, "reduce_scatter")
        parts = inputs if isinstance(outputs, torch.Tensor) else inputs[0]
        return _reductions.reduce_scatter_list(self._group, output, parts, _reduce_op(opts), opts)

    def reduce_scatter_single(self, output: Tensor, source: Tensor, opts: Any = None) -> Work:
        return self.reduce_scatter_single_coalesced([output], [source], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> Work:
        return _reductions.reduce_scatter_single(self._group, outputs, inputs, _reduce_op(opts), opts)

    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ---- movement

    def broadcast(
        self, tensors: list[Tensor] | Tensor, opts: Any = None, timeout: timedelta | None = None
    ) -> Work:
        tensor = tensors if isinstance(tensors, torch.Tensor) else _only(tensors, "broadcast")
        root = opts if isinstance(opts, int) else getattr(opts, "rootRank", 0)
        opts = _options(opts, None, timeout)
        return _movement.broadcast(self._group, tensor, root, opts)

    def allgather(self, outputs: list[Any], inputs: list[Tensor] | Tensor, opts: Any = None) -> Work:
        if isinstance(inputs, torch.Tensor):
            return _movement.all_gather_list(self._group, outputs, inputs, opts)
        source = _only(inputs, "allgather")
        return _movement.all_gather_list(self._group, outputs[0], source, opts)

    def allgather_coalesced(
        self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None
    ) -> Work:
        works = [
            _movement.all_gather_list(self._group, row, source, opts)
            for row, source in zip(outputs, inputs, strict=True)
        ]
        return JointWork(works)

    def all_gather_single(self, output: Tensor, source: Tensor, opts: Any = None) -> Work:
        return _movement.all_gather_single(self._group, [output], [source], opts)

    def all_gather_single_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> Work:
        return _movement.all_gather_single(self._group, outputs, inputs, opts)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> Work:
        source = _only(inputs, "gather")
        rows = outputs[0] if outputs else []
        return _movement.gather(self._group, rows, source, opts.rootRank, opts)

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> Work:
        output = _only(outputs, "scatter")
        parts = inputs[0] if inputs else []
        return _movement.scatter(self._group, output, parts, opts.rootRank, opts)

    def all_to_all_single(
        self,
        output: Tensor,
        source: Tensor,
        output_split_sizes: list[int],
        input_split_sizes: list[int],
        opts: Any = None,
    ) -> Work:
        return _movement.all_to_all_single(
            self._group, output, source, output_split_sizes, input_split_sizes, opts
        )

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        return _movement.all_to_all_list(self._group, outputs, inputs, opts)

    def send(self, tensors: list[Tensor], dst: int, tag: int = 0) -> Work:
        return self._mail.send(_only(tensors, "send"), dst, tag)

    def recv(self, tensors: list[Tensor], src: int, tag: int = 0) -> Work:
        return self._mail.receive(_only(tensors, "recv"), src, tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        return self._mail.receive_any(_only(tensors, "recv"), tag)

    # ---- others

    def barrier(self, opts: Any = None) -> Work:
        return _movement.barrier(self._group, opts)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        seconds = self._group.seconds if timeout is None else timeout.total_seconds()
        monitored_barrier(self._group, self._store, seconds, wait_all_ranks=wait_all_ranks)

    def _start_coalescing(self, device: torch.device) -> None:  # noqa: ARG002
        self._group.coalesced = []

    def _end_coalescing(self, device: torch.device) -> Work:  # noqa: ARG002
        works, self._group.coalesced = self._group.coalesced, None
        return JointWork(works) if works else CompletedWork([])


class _Options:
    """What torch's options objects have, for callers that give the parts."""

    asyncOp = True  # noqa: N815

    def __init__(self, reduce_op: Any, timeout: timedelta | None) -> None:
        self.reduceOp = ReduceOp.SUM if reduce_op is None else reduce_op
        self.timeout = timeout if timeout is not None else timedelta(0)


def _options(opts: Any, op: Any, timeout: timedelta | None) -> Any:
    """The options object given, or one made of the parts."""
    if hasattr(opts, "timeout") and op is None and timeout is None:
        return opts
    is_op = opts is not None and not isinstance(opts, int) and not hasattr(opts, "timeout")
    return _Options(opts if is_op else op, timeout)


def _reduce_op(opts: Any) -> Any:
    return getattr(opts, "reduceOp", ReduceOp.SUM)


def _only(tensors: list[Tensor], what: str) -> Tensor:
    if len(tensors) != 1:
        message = f"{what}: expected one tensor per process, got {len(tensors)}"
        raise ValueError(message)
    return tensors[0]
