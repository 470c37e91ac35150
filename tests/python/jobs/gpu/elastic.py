"""An elastic job on stand-in GPUs loses a rank, or NCCL has an error: it goes on, with new communicators."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch_cuda

torch_cuda.use()

import torch

import horovod.torch as hvd

STEPS = 10
killed = Path(sys.argv[1])
error_file = os.environ.get("STANDIN_NCCL_ERROR_FILE")
hvd.init()
model = torch.nn.Linear(4, 4).to(f"cuda:{hvd.local_rank()}")
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), named_parameters=model.named_parameters()
)


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    device = torch.device("cuda", hvd.local_rank())
    while state.step < STEPS:
        optimizer.zero_grad()
        model(torch.full((3, 4), 1.0 + hvd.rank(), device=device)).square().mean().backward()
        if state.step == STEPS // 2 and hvd.rank() == hvd.size() - 1 and not killed.exists():
            killed.touch()
            if error_file is None:
                os.kill(os.getpid(), signal.SIGKILL)
            Path(error_file).touch()
        optimizer.step()
        state.step += 1
        state.commit()


train(hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0))
weights = torch.cat([p.detach().flatten() for p in model.parameters()])
largest = hvd.allreduce(weights, op=hvd.Max, name="largest")
assert torch.equal(largest.cpu(), weights.cpu()), "the ranks differ"
print("ELASTIC RIGHT", hvd.rank(), "of", hvd.size(), flush=True)
