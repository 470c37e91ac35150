"""Streams, devices and communicators of a process: what is waited for, and what is made when."""

from __future__ import annotations

import ctypes
import os
import sys

import torch_cuda

driver = torch_cuda.use()

import pytest
import torch

import horovod.torch as hvd

if "uneven" in sys.argv:  # the smallest number counts
    os.environ["HOROVOD_NUM_NCCL_STREAMS"] = str(2 + int(os.environ["HOROVOD_RANK"]))
    STREAMS = 2
else:
    STREAMS = int(os.environ["HOROVOD_NUM_NCCL_STREAMS"])
alone = [hvd.ProcessSet([0]), hvd.ProcessSet([1])]
hvd.init(process_sets=alone)
rank, size = hvd.rank(), hvd.size()
total = float(sum(range(1, size + 1)))
nccl = ctypes.CDLL(os.environ["HOROVOD_NCCL_LIB"])
for name in ("standin_nccl_comms_alive", "standin_nccl_launches"):
    getattr(nccl, name).restype = ctypes.c_int64


def full(value: float, count: int, device: int) -> torch.Tensor:
    return torch.full((count,), float(value), device=f"cuda:{device}")


def same(result: torch.Tensor, value: float) -> None:
    assert torch.equal(result.cpu(), torch.full(result.shape, value)), (result.cpu(), value)


def communicators() -> int:
    return int(nccl.standin_nccl_comms_alive())


# A communicator for each list of devices and each stream, when they are first used.
assert communicators() == 0
first, second = 2 * rank, 2 * rank + 1
for i in range(4 * STREAMS):
    same(hvd.allreduce(full(rank + 1, 100, first), op=hvd.Sum, name=f"first{i}"), total)
assert communicators() == STREAMS, communicators()
for i in range(4 * STREAMS):
    device = first if i % 2 else second
    result = hvd.allreduce(full(rank + 1, 100, device), op=hvd.Sum, name=f"both{i}")
    same(result, total)
    assert result.get_device() == device, (result.device, device)
assert communicators() <= 2 * STREAMS, communicators()
# One rank on its first device, the other on its second one.
crossed = second if rank == 0 else first
same(hvd.allreduce(full(rank + 1, 100, crossed), op=hvd.Sum, name="crossed"), total)
known = communicators()
same(hvd.allreduce(full(rank + 1, 100, first), op=hvd.Sum, name="own", process_set=alone[rank]), rank + 1.0)
assert communicators() == known + 1, communicators()
with pytest.raises(hvd.HorovodInternalError, match="same device"):
    hvd.grouped_allreduce([full(1, 5, first), full(1, 5, second)], name="apart")

# A group is one launch.
launches = int(nccl.standin_nccl_launches())
hvd.grouped_allreduce([full(1, 10 + i, first) for i in range(30)], name="group")
assert int(nccl.standin_nccl_launches()) == launches + 1

# Complete in one stream, waited for in another one: memory that goes back to the first one is not written
# before NCCL has read it. Every item of a stream takes its time.
driver.set("item_delay_us", 20_000)
side = torch.Stream(device=f"cuda:{first}")
for i in range(3):
    given = full(rank + 1, 5000, first)
    handle = hvd.allreduce_async(given, op=hvd.Sum, name=f"other{i}")
    with side:
        result = hvd.synchronize(handle)
    del given, handle
    taken = full(-1, 5000, first)  # where `given` was
    with side:
        same(result, total)
    del taken, result
driver.set("item_delay_us", 0)

# A graph that is captured meanwhile is not spoiled by what is under way, and refuses what is new.
late = full(0, 1000, first)
values = torch.full((1000,), float(rank + 1))
with side:
    kept = driver.copy_later(late, values, side.stream_id, 100_000)
    handle = hvd.allreduce_async_(late, op=hvd.Sum, name="while")
    driver.set("capturing", 1)
    with pytest.raises((hvd.HorovodInternalError, ValueError), match="captured into a CUDA graph"):
        hvd.allreduce_async_(late, name="captured")
    result = hvd.synchronize(handle)
    driver.set("capturing", 0)
    same(result, total)

# What streams still run when the job ends is not lost.
driver.set("item_delay_us", 50_000)
result = hvd.allreduce(full(5 * (rank + 1), 100, first), op=hvd.Sum, name="last")
hvd.shutdown()
driver.set("item_delay_us", 0)
same(result, 5 * total)
assert communicators() == 0, communicators()
print("STREAMS RIGHT", rank)
