"""A torch.distributed world on this backend for each test that asks for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch.distributed as dist

import horovod.torch as hvd


@pytest.fixture
def world() -> Iterator[dist.ProcessGroup]:
    """The default group, made the way programs make it; destroyed after the test."""
    hook = sys.excepthook  # torch wraps it once more for each world
    dist.init_process_group("horovod")
    try:
        yield dist.group.WORLD
        hvd.barrier()
    finally:
        dist.destroy_process_group()
        sys.excepthook = hook
