"""Averaging the 161 arrays of ResNet-50: one allreduce of a pytree, against psum over Gloo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from benchlib.cases import best_of, make_case, taken
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.parameters import RESNET50
from benchlib.readings import CaseReadings
from benchlib.world import World
from jax.sharding import PartitionSpec

import horovod.jax as hvd

from . import gloo

Step = Callable[[Any], Any]


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare programs whose arguments are donated, as those of a training step are."""
    arrays = [jnp.full(shape, world.rank + 1.0, jnp.float32) for shape in RESNET50.shapes]
    where = gloo.mesh()
    each = PartitionSpec(gloo.AXIS)
    psum: Step = jax.jit(
        gloo.on_ranks(lambda tree: jax.lax.pmean(tree, gloo.AXIS), where, (each,), each), donate_argnums=0
    )
    ours: Step = jax.jit(hvd.allreduce, donate_argnums=0)
    _check(world, "hvd.allreduce", ours(arrays))
    arrays = [jnp.full(shape, 1.0, jnp.float32) for shape in RESNET50.shapes]
    contestants = [
        Contestant("hvd.allreduce", _repeated(ours, arrays)),
        Contestant("psum", _repeated(psum, gloo.spread(arrays, where))),
        Contestant("psum of one array", _joined(where)),
    ]
    name = f"np={world.size} averaging: {RESNET50.name}"
    rounds = Contest(world).measure(name, contestants, effort)
    columns = [
        taken("ours", "hvd.allreduce"),
        best_of("peer", ["psum", "psum of one array"], "psum over gloo"),
    ]
    return [make_case(name, "ms", world.size, rounds, columns)]


def _repeated(step: Step, tree: Any) -> Callable[[int], None]:
    kept = [jax.tree.map(lambda array: array + 0, tree)]

    def run(operations: int) -> None:
        for _ in range(operations):
            kept[0] = step(kept[0])
        jax.block_until_ready(kept[0])

    return run


def _joined(where: Any) -> Callable[[int], None]:
    each = PartitionSpec(gloo.AXIS)
    step: Step = jax.jit(
        gloo.on_ranks(lambda long: jax.lax.pmean(long, gloo.AXIS), where, (each,), each), donate_argnums=0
    )
    return _repeated(step, gloo.spread(jnp.ones(RESNET50.element_count, jnp.float32), where))


def _check(world: World, name: str, results: Sequence[Any]) -> None:
    expected = (world.size + 1) / 2
    if not all(bool((result == expected).all()) for result in results):
        message = f"{name}: expected {expected} everywhere"
        raise AssertionError(message)
