"""How gradients of a pytree are reduced: what DistributedOptimizer, grad and value_and_grad share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from horovod._core import codes
from horovod._core.gradients import form_groups, scale_factors
from horovod._core.process_sets import ProcessSet, global_process_set

from .compression import Compression, Compressor
from .operations import allreduce


@dataclass(frozen=True)
class GradientReduction:
    """The options of a reduction of gradients; `groups` is a number of operations, or None for one."""

    op: int = codes.AVERAGE
    compression: type[Compressor] = Compression.none
    gradient_predivide_factor: float = 1.0
    groups: int | None = None
    process_set: ProcessSet = global_process_set
    name: str | None = None

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        scale_factors(average=self.op == codes.AVERAGE, predivide_factor=self.gradient_predivide_factor)
        if self.groups is not None and (not isinstance(self.groups, int) or self.groups <= 0):
            message = f"groups should be a positive integer or None, got {self.groups!r}"
            raise ValueError(message)

    def __call__(self, gradients: Any) -> Any:
        """Reduce a pytree of gradients; a rank alone or outside of the set has nothing to reduce."""
        if (self.process_set.size() or 1) <= 1 or self.process_set.included() is False:
            return gradients
        leaves, tree = jax.tree_util.tree_flatten(gradients)
        if not leaves:
            return gradients
        if self.groups is None:
            return jax.tree_util.tree_unflatten(tree, self._reduced(leaves, self.name))
        results: list[Any] = [None] * len(leaves)
        parts = form_groups(list(range(len(leaves))), self.groups, key=lambda place: place)
        for number, places in enumerate(parts):
            name = None if self.name is None else f"{self.name}.group_{number}"
            reduced = self._reduced([leaves[place] for place in places], name)
            for place, value in zip(places, reduced, strict=True):
                results[place] = value
        return jax.tree_util.tree_unflatten(tree, results)

    def _reduced(self, leaves: Sequence[Any], name: str | None) -> Sequence[Any]:
        prescale, postscale = scale_factors(
            average=self.op == codes.AVERAGE, predivide_factor=self.gradient_predivide_factor
        )
        reduced: Sequence[Any] = allreduce(
            list(leaves),
            name=name,
            compression=self.compression,
            op=self.op,
            prescale_factor=prescale,
            postscale_factor=postscale,
            process_set=self.process_set,
        )
        return reduced
