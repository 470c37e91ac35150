"""The smallest allreduce: what Python adds to the core, and what Gloo takes."""

from __future__ import annotations

from typing import Final

import torch
import torch.distributed as dist
from benchlib.cases import added, at_most, make_case, taken
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.readings import CaseReadings
from benchlib.world import World

import horovod.torch as hvd
from horovod._core import _native, codes

from .gloo import start_gloo

_OVERHEAD_SECONDS: Final = 5e-6


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on one buffer of 4 bytes."""
    start_gloo(world)
    _check(world)
    rounds = Contest(world).measure("latency", _contestants(torch.zeros(1)), effort)
    np = world.size
    return [
        make_case(
            f"np={np} latency: 4 B", "us", np, rounds,
            [taken("ours", "hvd.allreduce_"), taken("peer", "gloo")],
        ),
        make_case(
            f"np={np} latency: beyond the C call", "us", np, rounds,
            [added("ours", "hvd.allreduce_", "C call"), at_most(_OVERHEAD_SECONDS)],
        ),
    ]  # fmt: skip


def _contestants(tensor: torch.Tensor) -> list[Contestant]:
    address, shape = tensor.data_ptr(), tensor.shape

    def horovod(operations: int) -> None:
        for _ in range(operations):
            hvd.allreduce_(tensor)

    def c_call(operations: int) -> None:
        for _ in range(operations):
            _native.run(
                kind=codes.ALLREDUCE,
                dtype=codes.FLOAT32,
                reduce_op=codes.AVERAGE,
                shape=shape,
                input=address,
                output=address,
                owner=tensor,
            )

    def gloo(operations: int) -> None:
        for _ in range(operations):
            dist.all_reduce(tensor)

    return [
        Contestant("hvd.allreduce_", horovod),
        Contestant("C call", c_call),
        Contestant("gloo", gloo),
    ]


def _check(world: World) -> None:
    """All must compute something before it matters how long it takes."""
    expected = sum(range(1, world.size + 1))
    for contestant in _contestants(tensor := torch.zeros(1)):
        tensor.fill_(1 + world.rank)
        contestant.run(1)
        divisor = 1 if contestant.name == "gloo" else world.size
        if tensor.item() != expected / divisor:
            message = f"{contestant.name}: expected {expected / divisor}, got {tensor.item()}"
            raise AssertionError(message)
