"""A rank whose memory is measured: python -m tensorflowbench.memory plain|horovod PLACE."""

from __future__ import annotations

import os
import sys
from typing import Final

from benchlib.memory import write_used_mib
from benchlib.parameters import RESNET50

from .problems import cheap
from .step import training_step
from .threads import one_compute_thread

_STEPS: Final = 20


def main(way: str, place: str) -> None:
    """Train and write down what this rank occupies."""
    one_compute_thread()
    problem = cheap(RESNET50, int(os.environ["HOROVOD_RANK"]))
    if way == "horovod":
        import horovod.tensorflow as hvd  # noqa: PLC0415 - the plain job must not have it

        hvd.init()
        step = training_step(problem, hvd.DistributedGradientTape)
    else:
        step = training_step(problem)
    for _ in range(_STEPS):
        step()
    write_used_mib(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
