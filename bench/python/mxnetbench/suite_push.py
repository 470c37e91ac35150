"""What a small allreduce costs, pushed to MXNet's engine and waited for, beyond the call of the core."""

from __future__ import annotations

from typing import Final

import mxnet as mx
from benchlib.cases import added, at_most, make_case, taken
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.readings import CaseReadings
from benchlib.world import World

import horovod.mxnet as hvd
from horovod._core import _native, codes
from horovod.mxnet._arrays import settle

_LIMIT_SECONDS: Final = 20e-6


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare the engine's way, the core's, and an operation of MXNet that talks to nobody."""
    contestants = [
        Contestant("push + wait", _pushed),
        Contestant("C call", _called()),
        Contestant("add", _add),
    ]
    _check(world)
    title = f"np={world.size} push: an allreduce of 4 B"
    rounds = Contest(world).measure(title, contestants, effort)
    columns = [
        added("ours", "push + wait", "C call", "beyond the C call"),
        at_most(_LIMIT_SECONDS),
        taken("peer", "push + wait"),
        taken("peer", "C call"),
        taken("peer", "add", "an addition of MXNet"),
    ]
    return [make_case(title, "us", world.size, rounds, columns)]


_values = mx.nd.ones((1,))
_other_values = mx.nd.ones((1,))


def _pushed(operations: int) -> None:
    for _ in range(operations):
        hvd.allreduce_(_values, op=hvd.Max, name="pushed").wait_to_read()


def _add(operations: int) -> None:
    for _ in range(operations):
        _other_values.__iadd__(0)
        _other_values.wait_to_read()


def _called():  # noqa: ANN202 - what a contestant runs
    array = mx.nd.ones((1,))
    address = settle(array)

    def run(operations: int) -> None:
        for _ in range(operations):
            _native.run(
                kind=codes.ALLREDUCE,
                dtype=codes.FLOAT32,
                reduce_op=codes.MAX,
                shape=(1,),
                input=address,
                output=address,
                name="called",
                owner=array,
            )

    return run


def _check(world: World) -> None:
    got = hvd.allreduce(mx.nd.full((1,), world.rank + 1), op=hvd.Sum).asscalar()
    expected = world.total(world.rank + 1)
    if got != expected:
        message = f"allreduce: expected {expected}, got {got}"
        raise AssertionError(message)
