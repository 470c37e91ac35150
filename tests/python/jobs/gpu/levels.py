"""Reductions of stand-in GPUs on two hosts with two ranks each, many at a time: in levels and without."""

from __future__ import annotations

import random

import torch_cuda

driver = torch_cuda.use()

import torch

import horovod.torch as hvd

HOSTS = 2
SETS = {"host": [0, 1], "across": [1, 3], "uneven": [0, 1, 2], "all": [0, 1, 2, 3]}

sets = {name: hvd.ProcessSet(ranks) for name, ranks in SETS.items() if name != "all"}
hvd.init(process_sets=list(sets.values()))
sets["all"] = hvd.global_process_set
rank, size = hvd.rank(), hvd.size()
assert (size, hvd.local_size()) == (4, 2)
device = torch.device("cuda", rank)
KINDS = [
    (torch.float32, hvd.Sum),
    (torch.float32, hvd.Average),
    (torch.float64, hvd.Max),
    (torch.bfloat16, hvd.Sum),
    (torch.int32, hvd.Sum),
    (torch.int32, hvd.Average),
    (torch.int64, hvd.Product),
    (torch.int16, hvd.Sum),  # through host memory, as NCCL does not know it
    (torch.uint8, hvd.Max),
]
COUNTS = [1, 3, 7, 8, 9, 63, 1000, 70_001, 1_300_007]


def values(of: int, count: int, dtype: torch.dtype, salt: int) -> torch.Tensor:
    """What a rank gives: numbers that are the same in sums of any order."""
    return ((torch.arange(count) * (of + 1) + salt) % 5 + of).to(dtype)


def expected(members: list[int], count: int, dtype: torch.dtype, op: object, salt: int) -> torch.Tensor:
    given = torch.stack([values(of, count, dtype, salt).double() for of in members])
    if op == hvd.Max:
        return given.max(0).values
    if op == hvd.Product:
        return given.prod(0)
    summed = given.sum(0)
    if op == hvd.Sum:
        return summed
    return (summed / len(members)).trunc() if dtype == torch.int32 else summed / len(members)


def check(result: torch.Tensor, wanted: torch.Tensor, what: object) -> None:
    assert result.device == device, what
    assert torch.allclose(result.cpu().double(), wanted, rtol=1e-6), (what, result.cpu(), wanted)


same = random.Random(7)  # all ranks draw the same
for round_number in range(4):
    under_way = []
    for number in range(24):
        name = same.choice(["all", "all", "all", *SETS])
        (dtype, op), count, salt = same.choice(KINDS), same.choice(COUNTS), same.randrange(5)
        is_group, in_place = same.random() < 0.3, same.random() < 0.5
        members = SETS[name]
        if rank not in members:
            continue
        counts = [count, 17, 3] if is_group else [count]
        tensors = [values(rank, n, dtype, salt).to(device) for n in counts]
        what = (round_number, number, name, dtype, op, count, is_group)
        common = {"op": op, "name": f"{round_number}.{number}", "process_set": sets[name]}
        if is_group:
            submit = hvd.grouped_allreduce_async_ if in_place else hvd.grouped_allreduce_async
            handle = submit(tensors, **common)
        else:
            submit = hvd.allreduce_async_ if in_place else hvd.allreduce_async
            handle = submit(tensors[0], **common)
        wanted = [expected(members, n, dtype, op, salt) for n in counts]
        under_way.append((handle, wanted, what))
    for handle, wanted, what in under_way:
        result = hvd.synchronize(handle)
        results = [result] if isinstance(result, torch.Tensor) else result
        for given, one in zip(results, wanted, strict=True):
            check(given, one, what)

# A rank that has nothing more to give, and others that go on.
if rank != 1:
    for count in COUNTS:
        rest = hvd.allreduce(
            torch.full((count,), float(rank + 1), device=device), op=hvd.Sum, name=f"rest{count}"
        )
        check(rest, torch.full((count,), 8.0).double(), count)
hvd.join()
hvd.shutdown()
print("LEVELS RIGHT", rank, flush=True)
