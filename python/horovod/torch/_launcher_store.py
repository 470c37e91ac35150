"""The key-value store of torchrun, through which ranks on several hosts find each other.

torchrun's agent has bound MASTER_PORT already, so nothing else can listen there; its workers are
clients. A program that called torch.distributed.init_process_group first has a store in any case.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

# A wait inside torch does not look for Ctrl-C.
_SLICE_SECONDS = 0.5
_CONNECT_SECONDS = 30


class TorchExchange:
    """A store of torch as the core asks for it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def set(self, key: str, value: bytes, /) -> None:
        """Leave a value for the other ranks."""
        self._store.set(key, value)  # type: ignore[arg-type]  # torch's stub knows texts only

    def get(self, key: str, seconds: float, /) -> bytes | None:
        """Wait for a value of another rank; None: it did not come in time."""
        while True:
            span = min(seconds, _SLICE_SECONDS)
            if self._has(key, max(span, 0.001)):
                return bytes(self._store.get(key))
            seconds -= span
            if seconds <= 0:
                return None

    def remove(self, key: str, /) -> None:
        """Forget a value that every rank has read; stores that cannot do that keep it."""
        self._store.delete_key(key)

    def _has(self, key: str, seconds: float) -> bool:
        try:
            self._store.wait([key], timedelta(seconds=seconds))
        except RuntimeError:
            # The time passed, or the store is gone; which class says so depends on torch's version.
            # A store that is gone fails again.
            return bool(self._store.check([key]))
        return True


def started_by_torchrun(environment: Mapping[str, str]) -> bool:
    """Whether torchrun started this process and gave it peers on other hosts."""
    if "TORCHELASTIC_RUN_ID" not in environment or "HOROVOD_STORE_ADDRESSES" in environment:
        return False
    return environment.get("WORLD_SIZE") != environment.get("LOCAL_WORLD_SIZE")


def _torchrun_store(environment: Mapping[str, str]) -> Store:
    from torch._C._distributed_c10d import TCPStore  # noqa: PLC0415 - needed on several hosts only

    agent_serves = environment.get("TORCHELASTIC_USE_AGENT_STORE", "False") == "True"
    host, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    try:
        return TCPStore(
            host,
            port,
            is_master=not agent_serves and environment["RANK"] == "0",
            timeout=timedelta(seconds=_CONNECT_SECONDS),
            wait_for_workers=False,
            multi_tenant=True,  # init_process_group, called later, shares it
        )
    except RuntimeError as error:
        message = f"init: cannot reach torchrun's store at {host}:{port} (MASTER_ADDR, MASTER_PORT): {error}"
        raise RuntimeError(message) from error


def _default_store() -> Store | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    store: Store = distributed.distributed_c10d._get_default_store()  # noqa: SLF001 - there is no other way
    return store


def find_store() -> TorchExchange | None:
    """The store of init_process_group if there is one, else that of torchrun, else None."""
    store = _default_store()
    if store is None and started_by_torchrun(os.environ):
        store = _torchrun_store(os.environ)
    return None if store is None else TorchExchange(store)
