"""NCCL has an error on one rank: all are told, within seconds, what it was."""

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
hvd.allreduce(tensor, name="first")
hvd.barrier()  # all have it
if rank == 0:
    Path(os.environ["STANDIN_NCCL_ERROR_FILE"]).touch()
started = time.monotonic()


def go_on() -> None:
    while True:
        hvd.allreduce(tensor, name="fatal")


with pytest.raises(hvd.HorovodInternalError, match="NCCL async error: unhandled system error") as told:
    go_on()
took = time.monotonic() - started
assert took < LIMIT_SECONDS, took
print("TOLD", round(took, 2), str(told.value)[:300], flush=True)
