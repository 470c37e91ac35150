"""A worker: a state as large as that of ResNet-50 with momentum, steps that cost next to nothing.

Says when its steps are done, on the clock that all processes of a machine share:
  world EPOCH SIZE RANK PID LAST FIRST BUILDING NOTICED
LAST and FIRST are the last step before a reset (0: none) and the first after it, BUILDING is what a newcomer
needs after hvd.init() for its model and its state (0: it has them), NOTICED is when the world before failed
(0: it did not), all in ns.
"""

# ruff: noqa: T201 - whoever started this reads it
from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch

import horovod.torch as hvd
from horovod._core import _native
from horovod.common.exceptions import HorovodInternalError

PARAMETERS = 25_557_032
TENSORS = 161


def make_model() -> torch.nn.Module:
    """Return as many parameters as ResNet-50 has, in as many tensors."""
    each = PARAMETERS // TENSORS
    sizes = [each] * (TENSORS - 1) + [PARAMETERS - each * (TENSORS - 1)]
    model = torch.nn.Module()
    for number, size in enumerate(sizes):
        model.register_parameter(f"p{number}", torch.nn.Parameter(torch.zeros(size)))
    return model


def main() -> None:
    """Step until the file is there."""
    stop = Path(sys.argv[1])
    torch.set_num_threads(1)
    hvd.init()
    entered = time.monotonic_ns()
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()  # makes the momentum
    last = noticed = 0

    def train(state: hvd.elastic.TorchState) -> None:
        nonlocal last, noticed
        is_first = True
        while True:
            try:
                if not is_first:
                    state.check_host_updates()  # with all ranks, too
                wants_end = hvd.allreduce(torch.tensor([float(stop.exists())]), op=hvd.Max, name="step")
            except HorovodInternalError:
                noticed = time.monotonic_ns()
                raise
            now = time.monotonic_ns()
            if is_first:
                epoch = _native.elastic_epoch()
                building = 0 if last else built - entered
                place = (epoch, hvd.size(), hvd.rank())
                print("world", *place, os.getpid(), last, now, building, noticed, flush=True)
            is_first, last, noticed = False, now, 0
            if wants_end.item():
                return
            state.step += 1
            time.sleep(0.001)

    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0)
    built = time.monotonic_ns()
    hvd.elastic.run(train)(state)


if __name__ == "__main__":
    main()
