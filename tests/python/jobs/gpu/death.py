"""A rank dies while NCCL waits for it: the other one is told, within seconds, who it was.

With HOROVOD_ENABLE_ASYNC_COMPLETION=1 the survivor waits for the stream alone: programs read a loss so.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import torch_cuda

torch_cuda.use()

import pytest
import torch

import horovod.torch as hvd

LIMIT_SECONDS = 10  # less than one on a quiet machine

hvd.init()
rank = hvd.rank()
tensor = torch.ones(1000, device=f"cuda:{rank}")
hvd.allreduce(tensor, name="first")
hvd.barrier()  # all have it
if rank == 1:
    # Agreed, but never in its stream: the peer's NCCL waits for it.
    tensor_late = torch.ones(1000, device="cuda:1")
    handle = hvd.allreduce_async(tensor_late, name="fatal")
    if error_file := os.environ.get("STANDIN_NCCL_ERROR_FILE"):
        Path(error_file).touch()
        time.sleep(0.05)  # NCCL has seen that it goes, and it is still there
    os.kill(os.getpid(), signal.SIGKILL)
started = time.monotonic()


def go_on() -> None:
    for _ in range(1000):
        hvd.allreduce(tensor, name="fatal").cpu()


with pytest.raises(hvd.HorovodInternalError, match="rank 1") as told:
    go_on()
took = time.monotonic() - started
assert took < LIMIT_SECONDS, took
print("TOLD", round(took, 2), str(told.value)[:300])
