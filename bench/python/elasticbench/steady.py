"""A worker that measures itself.

Says `commit COMMIT_NS COPY_NS` for 100 MB, or `steps PER_MINUTE`, what commits take left out.
"""

# ruff: noqa: T201 - whoever started this reads it
from __future__ import annotations

import statistics
import sys
import time

import torch

import horovod.torch as hvd

COMMIT_BYTES = 100_000_000
STEPS_PER_COMMIT = 10


def measure_commit(rounds: int) -> None:
    """A commit of 100 MB against a copy of the same tensors, in turn."""
    model = torch.nn.Module()
    for number in range(20):
        model.register_parameter(f"p{number}", torch.nn.Parameter(torch.ones(COMMIT_BYTES // 80)))
    state = hvd.elastic.TorchState(model=model, step=0)
    targets = [torch.empty_like(parameter) for parameter in model.parameters()]
    commits, copies = [], []
    for number in range(rounds + 2):
        begin = time.perf_counter_ns()
        state.commit()
        middle = time.perf_counter_ns()
        with torch.no_grad():
            for target, parameter in zip(targets, model.parameters(), strict=True):
                target.copy_(parameter)
        if number >= 2:  # noqa: PLR2004 - the first ones allocate
            commits.append(middle - begin)
            copies.append(time.perf_counter_ns() - middle)
    if hvd.rank() == 0:
        print("commit", int(statistics.median(commits)), int(statistics.median(copies)), flush=True)


def measure_steps(seconds: float) -> None:
    """Steps per minute of a small model; what commits take is not counted."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), 0.01), named_parameters=model.named_parameters()
    )
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
    inputs, steps, spent, begin = torch.randn(32, 256), 0, 0.0, time.perf_counter()
    # All ranks take the same number of steps: rank 0 says when it is enough.
    while hvd.broadcast_object(time.perf_counter() - begin < seconds, 0, name="goes on"):
        for _ in range(STEPS_PER_COMMIT):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
            steps += 1
        before = time.perf_counter()
        state.commit()
        spent += time.perf_counter() - before
    if hvd.rank() == 0:
        print("steps", int(60 * steps / (time.perf_counter() - begin - spent)), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    hvd.init()
    {"commit": lambda: measure_commit(int(sys.argv[2])), "steps": lambda: measure_steps(float(sys.argv[2]))}[
        sys.argv[1]
    ]()
