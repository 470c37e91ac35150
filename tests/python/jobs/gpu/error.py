"""NCCL has an error on one rank: all are told, within seconds, what it was.

With STANDIN_NCCL_HANG=1 nobody is in a call of Horovod meanwhile: all wait for a stream, in which NCCL hangs.
"""

from __future__ import annotations

import os
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
first = hvd.allreduce(tensor, name="first")
hvd.barrier()  # all have it
if rank == 0:
    Path(os.environ["STANDIN_NCCL_ERROR_FILE"]).touch()
started = time.monotonic()
first.cpu()
hang_ended = time.monotonic() - started
assert hang_ended < LIMIT_SECONDS, hang_ended


def go_on() -> None:
    while True:
        hvd.allreduce(tensor, name="fatal")


with pytest.raises(hvd.HorovodInternalError, match="NCCL async error: unhandled system error") as told:
    go_on()
took = time.monotonic() - started
assert took < LIMIT_SECONDS, took
print("TOLD", round(took, 2), str(told.value)[:300], flush=True)
