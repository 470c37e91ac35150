"""jax.grad and jax.value_and_grad with gradients that all ranks have together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from horovod._core import codes
from horovod._core.process_sets import ProcessSet, global_process_set

from ._reducing import GradientReduction
from .compression import Compression, Compressor


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    op: int = codes.AVERAGE,
    compression: type[Compressor] = Compression.none,
    gradient_predivide_factor: float = 1.0,
    groups: int | None = None,
    process_set: ProcessSet = global_process_set,
    name: str | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return a function like jax.value_and_grad's, whose gradients are averaged over the ranks.

    The value is this rank's own: see metric_average. Other options are those of jax.value_and_grad.

    Arguments:
        fun: as in jax.value_and_grad.
        argnums: as in jax.value_and_grad.
        has_aux: as in jax.value_and_grad.
        op: Average, Sum or Adasum.
        compression: how floats travel: Compression.none, Compression.fp16 or
            Compression.bf16.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        groups: a number of groups whose gradients travel together.
        process_set: the ranks that take part, all of which must call this.
        name: what ranks match the operation by; without one they match by order, inside of
            jit by its place in the program.
        **options: other options of jax.value_and_grad.

    Raises:
        ValueError: an option that is refused.

    """
    reduction = GradientReduction(op, compression, gradient_predivide_factor, groups, process_set, name)
    local = jax.value_and_grad(fun, argnums, has_aux, **options)

    @functools.wraps(fun)
    def distributed(*args: Any, **kwargs: Any) -> Any:
        value, gradients = local(*args, **kwargs)
        return value, reduction(gradients)

    return distributed


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **options: Any
) -> Callable[..., Any]:
    """Return a function like jax.grad's, whose gradients are averaged over the ranks.

    Arguments:
        fun: as in jax.grad.
        argnums: as in jax.grad.
        has_aux: as in jax.grad.
        **options: those of value_and_grad.

    """
    both = value_and_grad(fun, argnums, has_aux, **options)

    @functools.wraps(fun)
    def distributed(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return distributed
