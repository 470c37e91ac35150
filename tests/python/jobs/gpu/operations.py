"""Every operation on stand-in GPUs, against what the ranks' values say the result is."""

from __future__ import annotations

import os

import torch_cuda

driver = torch_cuda.use()

import pytest
import torch

import horovod.torch as hvd
from horovod._core import _native, codes

alone = [hvd.ProcessSet([one]) for one in range(int(os.environ["HOROVOD_SIZE"]))]
hvd.init(process_sets=alone)
rank, size = hvd.rank(), hvd.size()
device = torch.device("cuda", rank)


def full(value: float, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, value, dtype=dtype, device=device)


def same(result: torch.Tensor, expected: torch.Tensor) -> None:
    assert result.device == device, (result.device, device)
    assert torch.allclose(result.cpu().double(), expected.double()), (result.cpu(), expected)


# Ranks that have nothing to give before their first operation take GPUs of their own all the same.
if rank == 0:
    same(hvd.allreduce(full(7, 1), op=hvd.Sum, name="early"), torch.full((1,), 7.0))
hvd.join()

total = sum(range(1, size + 1))
for dtype in (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int32,
    torch.int64,
    torch.uint8,
):
    for count in (1, 1000, 700_001):
        result = hvd.allreduce(full(rank + 1, count, dtype=dtype), op=hvd.Sum, name=f"{dtype}{count}")
        same(result, torch.full((count,), float(total)))
same(hvd.allreduce(full(rank + 1, 5)), torch.full((5,), total / size))
same(hvd.allreduce(full(rank + 1, 5), op=hvd.Max), torch.full((5,), float(size)))
same(hvd.allreduce(full(rank + 1, 5), op=hvd.Min), torch.full((5,), 1.0))
scaled = hvd.allreduce(full(rank + 1, 5), op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0)
same(scaled, torch.full((5,), total * 2.0))
same(
    hvd.allreduce(full(rank + 1, 5), op=hvd.Sum, compression=hvd.Compression.fp16),
    torch.full((5,), float(total)),
)
same(hvd.allreduce(full(rank == 0, 5, dtype=torch.bool), op=hvd.Sum), torch.ones(5))
adasum = hvd.allreduce(full(1.0, 5), op=hvd.Adasum)
same(adasum, torch.ones(5))

tensors = [full(rank + i, 10 * (i + 1)) for i in range(4)]
for i, result in enumerate(hvd.grouped_allreduce(tensors, op=hvd.Sum, name="group")):
    same(result, torch.full((10 * (i + 1),), float(sum(r + i for r in range(size)))))

same(hvd.allgather(full(rank, 3, 2)), torch.cat([torch.full((3, 2), float(r)) for r in range(size)]))
same(
    hvd.allgather(full(rank, rank + 1, 2)), torch.cat([torch.full((r + 1, 2), float(r)) for r in range(size)])
)
same(hvd.broadcast(full(rank, 70_000), root_rank=size - 1), torch.full((70_000,), size - 1.0))
splits = torch.tensor([1 + r for r in range(size)], dtype=torch.int32)
sent, received = hvd.alltoall(full(rank, int(splits.sum())), splits)
same(sent, torch.cat([torch.full((rank + 1,), float(r)) for r in range(size)]))
assert received.tolist() == [rank + 1] * size
same(hvd.reducescatter(full(rank + 1, 2 * size, 3), op=hvd.Sum), torch.full((2, 3), float(total)))
rows = 2 * size + 1  # uneven: the first rank gets one more
mine = 3 if rank == 0 else 2
same(hvd.reducescatter(full(rank + 1, rows, 3), op=hvd.Sum), torch.full((mine, 3), float(total)))

# What NCCL has no reduction for: factors of integers and of a maximum, shares that bfloat16 cannot express.
whole = hvd.allreduce(
    full(6, 700, dtype=torch.int32), op=hvd.Sum, prescale_factor=0.5, postscale_factor=1 / 3
)
same(whole, torch.full((700,), float(3 * size // 3)))
most = hvd.allreduce(full(rank + 1, 5), op=hvd.Max, prescale_factor=2.0, postscale_factor=0.25)
same(most, torch.full((5,), size / 2))
third = hvd.allreduce(full(3, 5000, dtype=torch.bfloat16), op=hvd.Sum, postscale_factor=1 / 3)
same(third, torch.full((5000,), float(size)))
for wire in (codes.FLOAT16, codes.BFLOAT16):
    sent = full(rank + 1, 1000)
    handle = _native.submit(
        kind=codes.ALLREDUCE, dtype=codes.FLOAT32, reduce_op=codes.SUM, wire_dtype=wire, shape=(1000,),
        input=sent.data_ptr(), output=sent.data_ptr(), name=f"wire{wire}", owner=sent, device=rank,
        stream=torch.cuda.current_stream(rank).cuda_stream,
    )  # fmt: skip
    _native.wait(handle, None)
    _native.release(handle)
    same(sent, torch.full((1000,), float(total)))

# A stream of the caller that is late: nothing blocks at submission, and the result has what came late.
if driver.is_standin:
    side = torch.Stream(device=device)
    late = full(0, 1000)
    values = torch.full((1000,), float(rank + 1))
    with side:
        kept = driver.copy_later(late, values, side.stream_id, 150_000)
        blocks = driver.get("host_blocks")
        handle = hvd.allreduce_async_(late, op=hvd.Sum, name="late")
        assert driver.get("host_blocks") == blocks, "submission blocked the host"
        assert not hvd.poll(handle), "complete before its input was there"
        same(hvd.synchronize(handle), torch.full((1000,), float(total)))

# A tensor that is dropped while it is on its way.
handles = [hvd.allreduce_async(full(rank + 1, 5000), op=hvd.Sum, name=f"dropped{i}") for i in range(8)]
others = [full(-1, 5000) for _ in range(8)]
for handle in handles:
    same(hvd.synchronize(handle), torch.full((5000,), float(total)))
del others

# Refusals that name what is wrong.
if driver.is_standin:
    driver.set("capturing", 1)
    with pytest.raises((hvd.HorovodInternalError, ValueError), match="captured into a CUDA graph"):
        hvd.allreduce(full(1, 5), name="captured")
    driver.set("capturing", 0)
elif torch.version.cuda:  # not in a rehearsal
    captured = full(1, 5)
    with (
        pytest.raises((hvd.HorovodInternalError, ValueError), match="captured into a CUDA graph"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        hvd.allreduce(captured, name="captured")
with pytest.raises((hvd.HorovodInternalError, ValueError), match=r"mixed.*(CPU.*GPU|GPU.*CPU)"):
    hvd.allreduce(torch.ones(5) if rank == 0 else full(1, 5), name="mixed")

# A set of one rank, and a rank that has nothing more to give.
same(hvd.allreduce(full(rank + 1, 5), process_set=alone[rank]), torch.full((5,), rank + 1.0))
if rank > 0:
    rest = hvd.allreduce(full(rank + 1, 5000), op=hvd.Sum, name="rest")
    same(rest, torch.full((5000,), total - 1.0))
assert hvd.join() > 0

# Nothing grows.
for _ in range(20):
    hvd.allreduce(full(1, 100), name="steady")
if driver.is_standin:
    events, memory = driver.get("events_alive"), driver.get("allocations_alive")
    for _ in range(200):
        hvd.allreduce(full(1, 100), name="steady")
    assert driver.get("events_alive") <= events + 2, (events, driver.get("events_alive"))
    assert driver.get("allocations_alive") <= memory + 2
    print("KERNELS", driver.get("kernels"))
hvd.shutdown()
print("OPERATIONS RIGHT", rank)
