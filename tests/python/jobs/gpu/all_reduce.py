"""torch.distributed on the backend of Horovod with stand-in GPUs: tensors are reduced where they lie."""

from __future__ import annotations

import torch_cuda

driver = torch_cuda.use()

import torch
import torch.distributed as dist

import horovod.torch.distributed  # noqa: F401

dist.init_process_group("horovod")
rank, size = dist.get_rank(), dist.get_world_size()
tensor = torch.full((1000,), float(rank + 1), device=f"cuda:{rank}")
work = dist.all_reduce(tensor, async_op=True)
work.wait()
assert torch.equal(tensor.cpu(), torch.full((1000,), float(sum(range(1, size + 1)))))
dist.barrier()
dist.destroy_process_group()
print("ALL_REDUCE RIGHT", rank)
