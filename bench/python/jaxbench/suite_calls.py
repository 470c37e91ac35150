"""What a small allreduce costs in a program, beyond another call that leaves XLA: one of LAPACK.

JAX starts programs with such calls on a thread of its own, which takes longer than they do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from benchlib.cases import added, at_most, make_case
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.parameters import RESNET50
from benchlib.readings import CaseReadings
from benchlib.world import World

import horovod.jax as hvd

_MANY: Final = len(RESNET50.shapes)
_SIDE: Final = 4
_ELEMENTS: Final = _SIDE * _SIDE
_LIMIT_SECONDS: Final = 5e-6

Node = Callable[[Any], Any]


def _allreduce(array: Any) -> Any:
    return hvd.allreduce(array, op=hvd.Sum)


def _lapack(array: Any) -> Any:
    factor = jax.lax.linalg.cholesky(array.reshape(_SIDE, _SIDE), symmetrize_input=False)
    return factor.reshape(_ELEMENTS)


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare programs that differ in one kind of node: a single one, and as many as ResNet-50 has arrays."""
    contest = Contest(world)
    return [_compared(world, contest, effort, count) for count in (1, _MANY)]


def _compared(world: World, contest: Contest, effort: Effort, count: int) -> CaseReadings:
    ours, base = _program(_allreduce, count), _program(_lapack, count)
    _check(world, ours, count)
    contestants = [
        Contestant("hvd.allreduce", _repeated(ours)),
        Contestant("LAPACK", _repeated(base)),
    ]
    name = f"np={world.size} call: {count} in a program, {4 * _ELEMENTS} B each"
    rounds = contest.measure(name, contestants, effort)
    columns = [
        added("ours", "hvd.allreduce", "LAPACK", "one allreduce", parts=count),
        at_most(_LIMIT_SECONDS),
    ]
    return make_case(name, "us", world.size, rounds, columns)


def _program(node: Node, count: int) -> Callable[[Any], Any]:
    def run(values: Any) -> Any:
        return sum(node(values * (index + 1.0)) for index in range(count))

    program: Callable[[Any], Any] = jax.jit(run)
    return program


def _repeated(program: Callable[[Any], Any]) -> Callable[[int], None]:
    values = jnp.ones(_ELEMENTS)

    def run(operations: int) -> None:
        for _ in range(operations):
            program(values).block_until_ready()

    return run


def _check(world: World, program: Callable[[Any], Any], count: int) -> None:
    """Twice: first the operations are agreed on, the second time takes the path that is measured."""
    expected = world.total(world.rank + 1.0) * count * (count + 1) / 2
    for _ in range(2):
        got = program(jnp.full(_ELEMENTS, world.rank + 1.0))
        if not bool((got == expected).all()):
            message = f"expected {expected} everywhere, got {got}"
            raise AssertionError(message)
