"""A worker under torchrun: the same state, kept in a file, since torchrun starts all workers again.

Says `step LIFE RANK PID NS` after the first step of each life; lives are counted from 0.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from elasticbench.training import PARAMETERS


def main() -> None:
    """Step until the file is there."""
    stop, checkpoint = Path(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if checkpoint.exists():
        torch.load(checkpoint)
    elif dist.get_rank() == 0:
        torch.save(torch.zeros(2 * PARAMETERS), checkpoint.with_suffix(".new"))
        checkpoint.with_suffix(".new").rename(checkpoint)  # whole, or not at all
    is_first = True
    while True:
        wants_end = torch.tensor([float(stop.exists())])
        dist.all_reduce(wants_end, op=dist.ReduceOp.MAX)
        if is_first:
            life = os.environ["TORCHELASTIC_RESTART_COUNT"]
            line = f"step {life} {dist.get_rank()} {os.getpid()} {time.monotonic_ns()}\n"
            os.write(1, line.encode())  # at once: the workers share this file
        is_first = False
        if wants_end.item():
            return
        time.sleep(0.001)


if __name__ == "__main__":
    main()
