"""Which processes a group has: the running job for the default group, a set of its own for others.

torch names groups the same way on every member, so the name is the key under which the members of a
group meet. Names repeat after destroy_process_group, hence the generation in front of them.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import torch

from horovod._core import _native, codes
from horovod.torch.distributed._process_group import HorovodProcessGroup, Members

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

# What launchers call the rank and the size; the core reads the same variables.
_LAUNCHER_VARIABLES = (
    ("HOROVOD_RANK", "HOROVOD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("RANK", "WORLD_SIZE"),
)


class _Counts:
    """How often this process has done things that its peers do as often."""

    generation = 0
    started_jobs = 0


def create_group(options: Any, _backend_options: object) -> HorovodProcessGroup:
    """The group that torch asks for with its private options object."""
    rank, size = options.group_rank, options.group_size
    members = list(options.global_ranks_in_group)
    if not members:
        start_job(rank, size, options.store)
        _Counts.generation = _agreed_generation()
        place = Members(process_set=0, ranks=tuple(range(size)), key=_key(options.group_id))
    else:
        key = _key(options.group_id)
        seconds = options.timeout.total_seconds()
        process_set = _native.process_set_meet(key, sorted(members), seconds)
        place = Members(process_set=process_set, ranks=tuple(members), key=key)
    return HorovodProcessGroup(options.store, rank, place, options.timeout)


def start_job(rank: int | None, size: int | None, store: Store | None) -> None:
    """Starts the job unless it runs, and checks that torch and the core agree who this process is.

    A launcher's word is taken if it fits. Processes that know their rank only from torch (started by
    torch.multiprocessing, say) meet under a name that rank 0 leaves in the store.
    """
    if not _native.is_initialized():
        import horovod.torch as hvd  # noqa: PLC0415

        if rank is None or size is None or store is None or _launcher_agrees(rank, size):
            hvd.init()
        else:
            place = (rank, size, rank, size, 0, 1)
            _native.init(place, _job_id(rank, store), (), False, 0)
            hvd.init()  # adds what every front end does after the start
    if rank is None or size is None:
        return
    if (_native.rank(), _native.size()) != (rank, size):
        message = (
            f"init_process_group: torch says rank {rank} of {size}, "
            f"the running job says rank {_native.rank()} of {_native.size()}"
        )
        raise ValueError(message)


def _launcher_agrees(rank: int, size: int) -> bool:
    given = (str(rank), str(size))
    return any(
        (os.environ.get(rank_name), os.environ.get(size_name)) == given
        for rank_name, size_name in _LAUNCHER_VARIABLES
    )


def _job_id(rank: int, store: Store) -> str:
    _Counts.started_jobs += 1
    key = f"horovod/job/{_Counts.started_jobs}"
    if rank == 0:
        store.set(key, f"torch-{uuid.uuid4().hex}")
    found: bytes = store.get(key)
    return found.decode()


def _agreed_generation() -> int:
    """One more than any rank has counted: ranks may have joined the job at different times."""
    count = torch.tensor([_Counts.generation + 1], dtype=torch.int64)
    address = count.data_ptr()
    _native.run(
        kind=codes.ALLREDUCE,
        dtype=codes.INT64,
        reduce_op=codes.MAX,
        shape=(1,),
        input=address,
        output=address,
        name="torch.distributed.generation",
        owner=count,
    )
    return int(count.item())


def _key(group_name: str) -> str:
    return f"torch.distributed/{_Counts.generation}/{group_name}"
