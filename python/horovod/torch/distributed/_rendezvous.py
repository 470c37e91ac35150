"""A store for torch whose address travels through the job: nobody has to choose a port.

torch wants a key-value store before it makes a group. Rank 0 opens one on a free port and the core
broadcasts where it is.
"""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch._C._distributed_c10d import TCPStore

from horovod._core import _native, codes
from horovod.torch.distributed._membership import start_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch._C._distributed_c10d import Store

_ADDRESS_BYTES = 256
_DEFAULT_TIMEOUT = timedelta(minutes=5)


def only_horovodrun_speaks(url: str) -> bool:
    """Whether `env://` would fail for want of variables that horovodrun has under other names."""
    if "rank=" in url or "world_size=" in url:
        return False
    return "HOROVOD_RANK" in os.environ and "RANK" not in os.environ


def meet_through_the_job(_url: str, timeout: timedelta | None) -> Iterator[tuple[Store, int, int]]:
    """The (store, rank, size) that torch's rendezvous handlers yield, once."""
    start_job(None, None, None)
    rank, size = _native.rank(), _native.size()
    wait = timeout or _DEFAULT_TIMEOUT
    server = _serve(wait) if rank == 0 else None
    address = _broadcast_text(f"{_host()}:{server.port}" if server is not None else "")
    if server is not None:
        yield server, rank, size
        return
    host, _, port = address.rpartition(":")
    yield TCPStore(host, int(port), is_master=False, timeout=wait), rank, size


def _serve(timeout: timedelta) -> TCPStore:
    return TCPStore("0.0.0.0", 0, is_master=True, timeout=timeout, wait_for_workers=False)  # noqa: S104


def _host() -> str:
    """A name that every rank can reach; the loopback works wherever no resolver does."""
    return "127.0.0.1" if _native.cross_size() == 1 else socket.getfqdn()


def _broadcast_text(text: str) -> str:
    buffer = torch.zeros(_ADDRESS_BYTES, dtype=torch.uint8)
    data = text.encode()
    buffer[: len(data)] = torch.tensor(list(data), dtype=torch.uint8)
    address = buffer.data_ptr()
    _native.run(
        kind=codes.BROADCAST,
        dtype=codes.UINT8,
        root_rank=0,
        shape=(_ADDRESS_BYTES,),
        input=address,
        output=address,
        name="torch.distributed.rendezvous",
        owner=buffer,
    )
    return bytes(buffer.tolist()).rstrip(b"\0").decode()
