"""torch.distributed on the backend of Horovod with stand-in GPUs: every operation where its tensors lie.

Inputs become ready in a stream that is late, results are read in another one. What the stand-in cannot
touch from the host would crash here if it were copied by Python without its stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch_cuda

driver = torch_cuda.use()

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import horovod.torch.distributed  # noqa: F401

LATE_US = 30_000

dist.init_process_group("horovod")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", rank)
side, other = torch.Stream(device=device), torch.Stream(device=device)
total = float(sum(range(1, size + 1)))
Tensor = torch.Tensor
alive: list[object] = []  # what streams may still read


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, device=device)


def full(value: float, *shape: int) -> Tensor:
    return torch.full(shape, float(value))


def late(inputs: dict[Tensor, Tensor], start: Callable[[], Any], *, blocks: bool = False) -> None:
    """Start an operation in a stream that fills its inputs late; wait in another one.

    blocks: this front end joins tensors first, which the stand-in does on the host.
    """
    with side:
        alive.extend(driver.copy_later(to, values, side.stream_id, LATE_US) for to, values in inputs.items())
        before = driver.get("host_blocks")
        work = start()
        assert blocks or driver.get("host_blocks") == before, "the submission blocked the host"
    with other:
        work.wait()  # perhaps before the streams have got there


def same(result: Tensor, expected: Tensor) -> None:
    with other:
        assert result.device == device, result.device
        found = result.cpu()
    assert torch.equal(found, expected), (found, expected)


def of_ranks(count: int) -> Tensor:
    return torch.cat([full(r + 1, count) for r in range(size)])


# ---- reductions
tensor = zeros(1000)
late({tensor: full(rank + 1, 1000)}, lambda: dist.all_reduce(tensor, async_op=True))
same(tensor, full(total, 1000))
dist.all_reduce(tensor)
assert torch.equal(tensor.cpu(), full(total * size, 1000))
empty = zeros(0)
dist.all_reduce(empty)
crossed = zeros(4, 6).t()  # not contiguous: copied on the device
assert not crossed.is_contiguous()
crossed += rank + 1
dist.all_reduce(crossed)
assert torch.equal(crossed.cpu(), full(total, 6, 4))
bits = torch.full((5,), 1 << rank, device=device)  # an operation that the core lacks
dist.all_reduce(bits, op=dist.ReduceOp.BOR)
assert torch.equal(bits.cpu(), torch.full((5,), (1 << size) - 1)), bits.cpu()

tensor = zeros(1000)
late({tensor: full(rank + 1, 1000)}, lambda: dist.reduce(tensor, 1, async_op=True))
same(tensor, full(total if rank == 1 else rank + 1, 1000))
output, source = zeros(500), zeros(500 * size)
late(
    {source: full(rank + 1, 500 * size)},
    lambda: dist.reduce_scatter_tensor(output, source, async_op=True),
)
same(output, full(total, 500))
parts = [zeros(7), zeros(7)]
late(
    {part: full(rank + 1 + i, 7) for i, part in enumerate(parts)},
    lambda: dist.reduce_scatter(output[:7], parts, async_op=True),
    blocks=True,
)
same(output[:7], full(total + size * rank, 7))

# ---- movement
tensor = zeros(1000)
late({tensor: full(rank + 1, 1000)}, lambda: dist.broadcast(tensor, 1, async_op=True))
same(tensor, full(2, 1000))
numbers = torch.tensor([rank, 7], dtype=torch.uint32).to(device)  # unknown to the core: bytes
dist.broadcast(numbers, 1)
assert numbers.cpu().tolist() == [1, 7], numbers.cpu()
source, gathered = zeros(300), zeros(300 * size)
late({source: full(rank + 1, 300)}, lambda: dist.all_gather_into_tensor(gathered, source, async_op=True))
same(gathered, of_ranks(300))
rows = [zeros(300) for _ in range(size)]
late({source: full(rank + 3, 300)}, lambda: dist.all_gather(rows, source, async_op=True))
for r, row in enumerate(rows):
    same(row, full(r + 3, 300))
uneven, mine = [zeros(r + 1) for r in range(size)], zeros(rank + 1)
late({mine: full(rank + 3, rank + 1)}, lambda: dist.all_gather(uneven, mine, async_op=True))
for r, row in enumerate(uneven):
    same(row, full(r + 3, r + 1))
received = [zeros(300) for _ in range(size)] if rank == 1 else None
late({source: full(rank + 5, 300)}, lambda: dist.gather(source, received, 1, async_op=True))
for r, row in enumerate(received or []):
    same(row, full(r + 5, 300))
output, given = zeros(20), [zeros(20) for _ in range(size)] if rank == 0 else None
late(
    {part: full(10 + r, 20) for r, part in enumerate(given or [])},
    lambda: dist.scatter(output, given, 0, async_op=True),
    blocks=True,
)
same(output, full(10 + rank, 20))
output, source = zeros(50 * size), zeros(50 * size)
late({source: full(rank + 1, 50 * size)}, lambda: dist.all_to_all_single(output, source, async_op=True))
same(output, of_ranks(50))
sent, splits = zeros(3), [1, 2]
output = zeros(size * splits[rank])
late(
    {sent: full(rank + 1, 3)},
    lambda: dist.all_to_all_single(output, sent, [splits[rank]] * size, splits, async_op=True),
    blocks=True,
)
same(output, of_ranks(splits[rank]))
outputs, inputs = [zeros(4) for _ in range(size)], [zeros(4) for _ in range(size)]
late(
    {part: full(10 * rank + r, 4) for r, part in enumerate(inputs)},
    lambda: dist.all_to_all(outputs, inputs, async_op=True),
    blocks=True,
)
for r, part in enumerate(outputs):
    same(part, full(10 * r + rank, 4))

# ---- a group in another order, and from one to another
turned = dist.new_group([1, 0], use_local_synchronization=False)
gathered = zeros(3 * size)
dist.all_gather_into_tensor(gathered, full(rank + 1, 3).to(device), group=turned)
assert torch.equal(gathered.cpu(), torch.cat([full(r + 1, 3) for r in (0, 1)]))
for count in (10, 100_000):
    message = zeros(count)
    if rank == 0:
        late({message: full(7, count)}, lambda to=message: dist.isend(to, 1))
    else:
        late({}, lambda to=message: dist.irecv(to, 0))
        same(message, full(7, count))
message = zeros(10)
if rank == 0:
    late({message: full(8, 10)}, lambda: dist.isend(message, 1))
else:
    assert dist.recv(message) == 0
    assert torch.equal(message.cpu(), full(8, 10))
dist.barrier()
work = dist.barrier(async_op=True)
work.wait()

# ---- refused by name
with pytest.raises(ValueError, match=r"all_gather: expected all tensors on one device, got cpu, cuda"):
    dist.all_gather_into_tensor(torch.zeros(2 * size), zeros(2))

# ---- training: the hooks of DDP take futures
torch.manual_seed(3)
layers = [torch.nn.Linear(10, 30), torch.nn.ReLU(), torch.nn.Linear(30, 2)]
model = torch.nn.Sequential(*layers)
alone = torch.nn.Sequential(*(torch.nn.Linear(10, 30), torch.nn.ReLU(), torch.nn.Linear(30, 2)))
alone.load_state_dict(model.state_dict())
wrapped = DistributedDataParallel(model.to(device))
batches = torch.randn(3, size, 8, 10)
for batch in batches:
    for module, values in ((wrapped, batch[rank].to(device)), (alone, batch.reshape(-1, 10))):
        module.zero_grad()
        module(values).pow(2).mean().backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.sub_(0.1 * parameter.grad)
for a, b in zip(model.parameters(), alone.parameters(), strict=True):
    assert torch.allclose(a.cpu(), b, atol=1e-5), (a.cpu(), b)

# Nothing grows.
events = 0
for i in range(60):
    dist.all_reduce(tensor)
    dist.broadcast(tensor, 0, async_op=True).wait()
    if i == 9:
        events = driver.get("events_alive")
assert driver.get("events_alive") <= events + 4, (events, driver.get("events_alive"))
dist.destroy_process_group()
print("TORCH.DISTRIBUTED RIGHT", rank)
