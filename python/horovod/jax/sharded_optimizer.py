"""ShardedOptimizer: the state of an optax optimizer divided among the ranks (ZeRO stage 1).

All parameters of a dtype are one long array, of which every rank owns a part. A step reduces the gradients of
this rank's part, updates it, and gathers the updates: as many bytes as an allreduce, and the state of an
optimizer (twice the parameters for Adam) is divided by the ranks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from horovod._core import codes
from horovod._core.process_sets import ProcessSet, global_process_set

from ._checks import members
from .compression import Compression, Compressor
from .operations import allgather, reducescatter
from .optimizer import _optax


class ShardedState(NamedTuple):
    """The part of an optimizer's state that this rank has; what gives all ranks the root's refuses it."""

    part: Any


def refuse_shards(operation: str, tree: Any, hint: str) -> None:
    """Raise if a pytree holds the state of a ShardedOptimizer."""
    nodes = jax.tree_util.tree_leaves(tree, is_leaf=lambda node: isinstance(node, ShardedState))
    if any(isinstance(node, ShardedState) for node in nodes):
        message = (
            f"{operation}: every rank has its own part of the state of a ShardedOptimizer, and would get "
            f"the root's; {hint}"
        )
        raise ValueError(message)


class _Layout:
    """Where the leaves of a pytree lie in one array per dtype, padded to equal parts."""

    def __init__(self, tree: Any, ranks: int) -> None:
        self.leaves, self.tree = jax.tree_util.tree_flatten(tree)
        self.ranks = ranks
        self.places: dict[str, list[int]] = {}
        for index, leaf in enumerate(self.leaves):
            self.places.setdefault(jnp.asarray(leaf).dtype.name, []).append(index)

    def flat(self, tree: Any) -> dict[str, Any]:
        """Return the long arrays of a pytree of the same structure."""
        leaves = self.tree.flatten_up_to(tree)
        return {dtype: self._joined(leaves, places) for dtype, places in self.places.items()}

    def _joined(self, leaves: list[Any], places: list[int]) -> Any:
        long = jnp.concatenate([jnp.ravel(leaves[index]) for index in places])
        return jnp.pad(long, (0, -long.size % self.ranks))

    def unflat(self, arrays: dict[str, Any]) -> Any:
        """Return the pytree again."""
        leaves: list[Any] = [None] * len(self.leaves)
        for dtype, places in self.places.items():
            start = 0
            for index in places:
                leaf = jnp.asarray(self.leaves[index])
                leaves[index] = arrays[dtype][start : start + leaf.size].reshape(leaf.shape)
                start += leaf.size
        return jax.tree_util.tree_unflatten(self.tree, leaves)

    def part(self, arrays: dict[str, Any], rank: int) -> dict[str, Any]:
        """Return what a rank owns."""
        each = {dtype: array.size // self.ranks for dtype, array in arrays.items()}
        return {
            dtype: array[rank * each[dtype] : (rank + 1) * each[dtype]] for dtype, array in arrays.items()
        }


def ShardedOptimizer(  # noqa: N802 - like DistributedOptimizer
    optimizer: Any,
    *,
    op: int = codes.AVERAGE,
    compression: type[Compressor] = Compression.none,
    process_set: ProcessSet = global_process_set,
    name: str | None = None,
) -> Any:
    """Return a transformation whose state is this rank's part of that of `optimizer`.

    For optimizers that treat every number alike (sgd, adam, adamw, lion, ...): one that looks at whole
    arrays or at the names of parameters (global norms, masks, lars) would see parts of a long array. Every
    rank saves and loads its own state, for as many ranks as there were: broadcast_optimizer_state and
    elastic.JaxState refuse it.

    Arguments:
        optimizer: computes the update from the combined gradients.
        op: Average or Sum.
        compression: the dtype in which gradients of float32 travel and are summed:
            Compression.none, Compression.fp16 or Compression.bf16. Updates travel as they
            are.
        process_set: the ranks that take part, all of which must call this; the others keep
            a whole state and train alone.
        name: what the names of its operations begin with.

    Raises:
        ValueError: an option that is refused.

    """
    inner = _optax().with_extra_args_support(optimizer)

    def init(params: Any) -> ShardedState:
        size, rank = _place(process_set)
        layout = _Layout(params, size)
        return ShardedState(inner.init(layout.part(layout.flat(params), rank)))

    def update(gradients: Any, state: ShardedState, params: Any = None, **extra: Any) -> Any:
        size, rank = _place(process_set)
        # That of the state; gradients may have other dtypes than parameters.
        layout = _Layout(gradients if params is None else params, size)
        mine = layout.flat(gradients)
        own = None if params is None else layout.part(layout.flat(params), rank)
        names = {dtype: None if name is None else f"{name}.{dtype}" for dtype in mine}
        if size > 1:
            mine = {
                dtype: reducescatter(
                    flat, op, name=names[dtype], compression=compression, process_set=process_set
                )
                for dtype, flat in mine.items()
            }
        updates, part = inner.update(mine, state.part, own, **extra)
        if size > 1:
            updates = {
                dtype: allgather(part, name=names[dtype], process_set=process_set)
                for dtype, part in updates.items()
            }
        return layout.unflat(updates), ShardedState(part)

    return _optax().GradientTransformationExtraArgs(init, update)


def _place(process_set: ProcessSet) -> tuple[int, int]:
    """Return among how many the state is divided, and which part is this rank's."""
    if process_set.included() is False and process_set.size() is not None:
        return 1, 0
    return members("sharded optimizer", process_set)
