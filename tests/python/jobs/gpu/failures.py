"""The driver refuses a call on one rank: all are told which one, and a new init goes on."""

from __future__ import annotations

from collections.abc import Callable

import torch_cuda

driver = torch_cuda.use()

import pytest
import torch

import horovod.torch as hvd

OUT_OF_MEMORY, INVALID = 2, 1


def sum_of(dtype: torch.dtype, count: int) -> Callable[[int], None]:
    def submit(rank: int) -> None:
        hvd.allreduce(torch.ones(count, dtype=dtype, device=f"cuda:{rank}"), op=hvd.Sum, name="refused")

    return submit


def gather(rank: int) -> None:
    hvd.allgather(torch.ones(rank + 5, device=f"cuda:{rank}"), name="refused")


by_nccl = sum_of(torch.float32, 1000)
through_host_memory = sum_of(torch.int16, 5_000_000)
# The first: later on events of earlier operations are used again.
CASES: list[tuple[str, int, str, Callable[[int], None]]] = [
    ("cuEventCreate", INVALID, "cuEventCreate: ", through_host_memory),
    ("cuMemHostAlloc", OUT_OF_MEMORY, "cuMemHostAlloc: out of memory", through_host_memory),
    ("cuMemcpyAsync", INVALID, "cuMemcpyAsync: ", through_host_memory),
    ("cuLaunchHostFunc", INVALID, "cuLaunchHostFunc: ", by_nccl),
    ("cuStreamWaitEvent", INVALID, "cuStreamWaitEvent: ", by_nccl),
    ("cuMemAlloc_v2", OUT_OF_MEMORY, "output of 44 bytes: cuMemAlloc: out of memory", gather),
]


def repeat(submit: Callable[[int], None], rank: int) -> None:
    for _ in range(1000):  # a rank may complete what the other one has begun
        submit(rank)


for function, code, text, submit in CASES:
    hvd.init()
    rank = hvd.rank()
    by_nccl(rank)  # what is made once is there
    torch.ones(5_000_000, dtype=torch.int16, device=f"cuda:{rank}")
    gather(rank)
    hvd.barrier()
    if rank == 0:
        driver.fail(function, 1, code)
    with pytest.raises(hvd.HorovodInternalError, match=text):
        repeat(submit, rank)
    hvd.shutdown()
print("FAILURES TOLD", flush=True)
