"""A barrier that names the ranks that did not come."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from torch.distributed import DistBackendError

from horovod._core import _native

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

    from horovod.torch.distributed._group import Group


def monitored_barrier(group: Group, store: Store, seconds: float, *, wait_all_ranks: bool) -> None:
    """Each rank leaves a mark in the store; rank 0 looks for all of them before the real barrier."""
    group.sequence += 1
    prefix = f"horovod/monitored/{group.members.key}/{group.sequence}"
    if group.rank != 0:
        store.set(f"{prefix}/{group.rank}", "here")
    else:
        missing = _missing(group, store, prefix, seconds, wait_all_ranks=wait_all_ranks)
        if missing:
            message = (
                f"monitored_barrier: rank {', '.join(map(str, missing))} did not come within {seconds:g} s"
            )
            raise DistBackendError(message)
    _native.barrier(group.members.process_set, seconds)


def _missing(group: Group, store: Store, prefix: str, seconds: float, *, wait_all_ranks: bool) -> list[int]:
    missing = []
    for rank in range(1, group.size):
        try:
            store.wait([f"{prefix}/{rank}"], timedelta(seconds=seconds))
        except RuntimeError:  # torch's DistStoreError: the time passed
            missing.append(rank)
            if not wait_all_ranks:
                break
            seconds = min(seconds, 0.1)  # the others had all this time already
    return missing
