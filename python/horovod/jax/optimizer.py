"""DistributedOptimizer: an optax transformation that reduces gradients before another one sees them."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from horovod._core import codes
from horovod._core.gradients import check_backward_passes
from horovod._core.process_sets import ProcessSet, global_process_set

from ._reducing import GradientReduction
from .compression import Compression, Compressor


class AccumulationState(NamedTuple):
    """With backward_passes_per_step: the passes so far, their sum, and the state of the optimizer."""

    passes: Any
    gradients: Any
    inner: Any


def _optax() -> Any:
    try:
        import optax  # noqa: PLC0415 - horovod.jax works without it
    except ImportError as error:
        message = "this optimizer is one of optax; pip install optax"
        raise ImportError(message) from error
    return optax


def DistributedOptimizer(  # noqa: N802 - the name in every front end
    optimizer: Any,
    *,
    op: int = codes.AVERAGE,
    compression: type[Compressor] = Compression.none,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    gradient_predivide_factor: float = 1.0,
    groups: int | None = None,
    process_set: ProcessSet = global_process_set,
    name: str | None = None,
) -> Any:
    """Return a transformation that gives `optimizer` the gradients of all ranks.

    With backward_passes_per_step, gradients are added up on this rank and reduced with every n-th call of
    update, which alone changes parameters; average_aggregated_gradients divides the sum by n.

    Arguments:
        optimizer: computes the update from the combined gradients.
        op: Average, Sum or Adasum.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        backward_passes_per_step: passes whose gradients are summed locally before they
            travel.
        average_aggregated_gradients: divide that local sum by the number of passes.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        groups: a number of groups whose gradients travel together.
        process_set: the ranks that take part, all of which must call this.
        name: what the names of its operations begin with.

    Raises:
        ValueError: an option that is refused.

    """
    check_backward_passes(backward_passes_per_step)
    reduction = GradientReduction(op, compression, gradient_predivide_factor, groups, process_set, name)
    inner = _optax().with_extra_args_support(optimizer)
    if backward_passes_per_step == 1:

        def update(gradients: Any, state: Any, params: Any = None, **extra: Any) -> Any:
            return inner.update(reduction(gradients), state, params, **extra)

        return _optax().GradientTransformationExtraArgs(inner.init, update)
    factor = 1.0 / backward_passes_per_step if average_aggregated_gradients else 1.0
    return _accumulating(inner, reduction, backward_passes_per_step, factor)


def _accumulating(inner: Any, reduction: GradientReduction, count: int, factor: float) -> Any:
    zeros_like = jax.tree_util.Partial(jax.tree_util.tree_map, jnp.zeros_like)

    def init(params: Any) -> AccumulationState:
        return AccumulationState(jnp.zeros((), jnp.int32), zeros_like(params), inner.init(params))

    def update(gradients: Any, state: AccumulationState, params: Any = None, **extra: Any) -> Any:
        total = jax.tree_util.tree_map(jnp.add, state.gradients, gradients)
        passes = state.passes + 1

        # All ranks count alike, so all of them take the same branch.
        def step(total: Any) -> Any:
            scaled = jax.tree_util.tree_map(lambda g: g * jnp.asarray(factor, g.dtype), total)
            updates, changed = inner.update(reduction(scaled), state.inner, params, **extra)
            return updates, AccumulationState(jnp.zeros((), jnp.int32), zeros_like(total), changed)

        def wait(total: Any) -> Any:
            return zeros_like(total), AccumulationState(passes, total, state.inner)

        return jax.lax.cond(passes == count, step, wait, total)

    return _optax().GradientTransformationExtraArgs(init, update)
