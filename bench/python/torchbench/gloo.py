"""The peer: torch.distributed on Gloo, in the processes of a Horovod job."""

from __future__ import annotations

import os
from datetime import timedelta

import torch.distributed as dist
from benchlib.ports import free_port
from benchlib.world import World

_TIMEOUT = timedelta(minutes=2)


def start_gloo(world: World) -> dist.ProcessGroup:
    """Make Gloo the default group: over loopback, at a free port that rank 0 chooses."""
    port = world.object_from_first(free_port() if world.is_first else None)
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(world.rank),
        WORLD_SIZE=str(world.size),
    )
    dist.init_process_group("gloo", init_method="env://", timeout=_TIMEOUT)
    group = dist.group.WORLD
    if group is None:
        message = "torch.distributed has no default group after init_process_group"
        raise RuntimeError(message)
    return group


def start_horovod_backend() -> dist.ProcessGroup:
    """Make a second group of all ranks, on our backend."""
    return dist.new_group(backend="horovod", timeout=_TIMEOUT)  # type: ignore[no-any-return]
