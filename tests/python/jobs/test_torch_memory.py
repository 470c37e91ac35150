"""Ten thousand steps of training do not grow the memory of a rank."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from job import horovodrun, run, write_script

LIMIT_SECONDS = 300  # about 10 on a quiet machine

PROGRAM = """
import gc
import os
from pathlib import Path

import torch
import horovod.torch as hvd

STEPS, WARM_UP_STEPS, LIMIT_KIB = 10_000, 2_000, 3 * 1024

def resident_kib():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

torch.set_num_threads(1)
hvd.init()
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
grouped = {"groups": 2, "compression": hvd.Compression.fp16}
options = {"step": {}, "background": grouped}[hvd.gradient_schedule().mode]
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=1e-3), model.named_parameters(), **options
)
data = torch.randn(4, 64)
for step in range(STEPS):
    if step == WARM_UP_STEPS:
        before = resident_kib()
    optimizer.zero_grad(set_to_none=step % 2 == 0)
    loss = model(data).square().mean()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        hvd.allreduce(loss.detach())
growth = resident_kib() - before
print(f"rank {hvd.rank()} grew by {growth} KiB", flush=True)
assert growth < LIMIT_KIB
"""


@pytest.mark.parametrize("schedule", ["step", "background"])
def test_training_does_not_grow(tmp_path: Path, schedule: str) -> None:
    command = [horovodrun(), "-np", "2", sys.executable, write_script(tmp_path, PROGRAM)]

    job = run(command, LIMIT_SECONDS, HOROVOD_GRADIENT_SCHEDULE=schedule)

    assert job.code == 0, job.output
    assert job.output.count("grew by") == 2
