"""A worker that goes from world to world.

Says `kept RSS_KB DESCRIPTORS THREADS` after a tenth of them, and at the end.
"""

# ruff: noqa: T201 - whoever started this reads it
from __future__ import annotations

import sys
from pathlib import Path

import torch

import horovod.torch as hvd
from horovod._core.elastic.world import World


def kept() -> tuple[int, int, int]:
    """Return what this process holds."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    return int(status["VmRSS"].split()[0]), descriptors, int(status["Threads"])


def main() -> None:
    """Reset as often as asked, with an allreduce in each world."""
    count = int(sys.argv[1])
    hvd.init()
    world = World(hvd.shutdown, hvd.init)
    world.begin()
    for number in range(1, count + 1):
        world()
        total = hvd.allreduce(torch.ones(1000), op=hvd.Sum, name="one")
        if total[0].item() != hvd.size():
            raise AssertionError(total)
        if number in (max(count // 10, 1), count) and hvd.rank() == 0:
            print("kept", *kept(), flush=True)


if __name__ == "__main__":
    main()
