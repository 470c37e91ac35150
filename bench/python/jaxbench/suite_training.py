"""Whole training steps: against psum over Gloo, and the share of workers that only meet at a barrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import optax
from benchlib.cases import make_case, taken
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.readings import CaseReadings
from benchlib.world import World
from jax.sharding import PartitionSpec

import horovod.jax as hvd

from . import gloo
from .problems import Problem, mlp, transformer

_RATE = 1e-4

Change = Callable[[Any], Any]


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on two models."""
    contest = Contest(world)
    return [_compared(world, contest, make(world.rank), effort) for make in (mlp, transformer)]


def _compared(world: World, contest: Contest, problem: Problem, effort: Effort) -> CaseReadings:
    ours = _contestant("horovod", problem, hvd.DistributedOptimizer(optax.sgd(_RATE)))
    alone = _contestant("barrier only", problem, optax.sgd(_RATE), world.barrier)
    peer = _psum(problem)
    ours.run(2)
    name = f"np={world.size} training: {problem.name}"
    rounds = contest.measure(name, [ours, peer, alone], effort)
    columns = [taken("ours", ours.name), taken("peer", peer.name), taken("limit", alone.name)]
    return make_case(name, "ms", world.size, rounds, columns)


def _step(problem: Problem, optimizer: Any, change: Change = lambda gradients: gradients) -> Any:
    def step(params: Any, state: Any, data: Any) -> tuple[Any, Any]:
        gradients = change(jax.grad(problem.loss)(params, data))
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    return step


def _repeated(name: str, step: Any, kept: list[Any], data: Any, meet: Callable[[], None]) -> Contestant:
    def run(operations: int) -> None:
        for _ in range(operations):
            kept[0], kept[1] = step(kept[0], kept[1], data)
            jax.block_until_ready(kept)
            meet()

    return Contestant(name, run)


def _contestant(
    name: str, problem: Problem, optimizer: Any, meet: Callable[[], None] = lambda: None
) -> Contestant:
    params = jax.tree.map(lambda array: array + 0, problem.params)
    step = jax.jit(_step(problem, optimizer), donate_argnums=(0, 1))
    return _repeated(name, step, [params, optimizer.init(params)], problem.data, meet)


def _psum(problem: Problem) -> Contestant:
    """Do the same with JAX's own collectives: all gradients in one pmean."""
    where, optimizer = gloo.mesh(), optax.sgd(_RATE)
    everywhere, each = PartitionSpec(), PartitionSpec(gloo.AXIS)
    plain = _step(problem, optimizer, lambda gradients: jax.lax.pmean(gradients, gloo.AXIS))

    def local(params: Any, state: Any, data: Any) -> tuple[Any, Any]:
        return plain(params, state, jax.tree.map(lambda array: array[0], data))

    program = gloo.on_ranks(local, where, (everywhere, everywhere, each), (everywhere, everywhere))
    params = gloo.replicated(jax.tree.map(lambda array: array + 0, problem.params), where)
    kept = [params, optimizer.init(params)]
    step = jax.jit(program, donate_argnums=(0, 1))
    return _repeated("psum over gloo", step, kept, gloo.spread(problem.data, where), lambda: None)
