"""Elastic training with JAX.

::

    @hvd.elastic.run
    def train(state):
        for state.step in range(state.step, steps):
            state.params, state.opt_state, loss = step(state.params, state.opt_state, batch_of(state.step))
            state.commit()

    train(hvd.elastic.JaxState(params=params, opt_state=opt_state, step=0))
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from horovod._core.basics import basics
from horovod._core.elastic.failures import is_bare_status, speaks_of_us
from horovod._core.elastic.shares import ElasticIndices
from horovod._core.elastic.variables import VariablesState
from horovod._core.elastic.world import World
from horovod._core.errors import HorovodInternalError
from horovod._core.objects import broadcast_object
from horovod.common.elastic import ObjectState, State, run_fn

from ._spec import forget_names
from .sharded_optimizer import refuse_shards

__all__ = ["ElasticIndices", "JaxState", "ObjectState", "State", "run"]


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a training function whose first argument is its state; it is called again after a reset.

    Arguments:
        func: its first argument is the state.

    """

    @functools.wraps(func)
    def translated(*args: Any, **kwargs: Any) -> Any:
        try:
            # What is computed may still fail: nothing is left under way when the function has returned.
            return jax.block_until_ready(func(*args, **kwargs))
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            is_of_runtime = isinstance(error, jax.errors.JaxRuntimeError) or is_bare_status(error)
            if is_of_runtime and speaks_of_us(error):
                raise HorovodInternalError(str(error)) from error
            raise

    return run_fn(translated, World(basics.shutdown, _init))


def _init(**kwargs: Any) -> None:
    """Start the core in another world; programs that know the old ranks are forgotten.

    So are the counts in names of operations: ranks that are new have none. Also where the number of ranks is
    the same: one may have been replaced, and others may have another rank now.
    """
    basics.init(**kwargs)
    jax.clear_caches()
    forget_names()


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray))


class JaxState(VariablesState):
    """The state of a training with JAX: pytrees of arrays, and other objects.

    Each argument becomes an attribute. Arrays in it are copied by a commit and travel as such; all else
    is kept as ObjectState does. Assign new trees, as functions of JAX return them. The state of a
    ShardedOptimizer is refused: every rank has another part of it, and one that is lost takes its part along.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Track the keyword arguments."""
        self._trees = {
            name for name, value in kwargs.items() if any(map(_is_array, jax.tree_util.tree_leaves(value)))
        }
        for name in self._trees:
            setattr(self, name, kwargs[name])
        plain = {name: value for name, value in kwargs.items() if name not in self._trees}
        super().__init__(bcast_object=broadcast_object, get_rank=basics.rank, **plain)
        self.save()

    def _leaves(self) -> tuple[list[Any], Any]:
        trees = {name: getattr(self, name) for name in sorted(self._trees)}
        refuse_shards("JaxState", trees, "use DistributedOptimizer in elastic training")
        leaves, form = jax.tree_util.tree_flatten(trees)
        return list(leaves), form

    def _read(self) -> list[Any]:
        leaves, _ = self._leaves()
        return [_plain(leaf) for leaf in jax.block_until_ready(leaves) if _is_array(leaf)]

    def _write(self, arrays: Sequence[Any]) -> None:
        leaves, form = self._leaves()
        values = iter(arrays)
        written = [_like(leaf, next(values)) if _is_array(leaf) else leaf for leaf in leaves]
        for name, tree in jax.tree_util.tree_unflatten(form, written).items():
            setattr(self, name, tree)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> Any:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _like(leaf: Any, array: Any) -> Any:
    """Make a value of the leaf's kind; a copy, since commits write into the array again."""
    if isinstance(leaf, np.ndarray):
        return array.copy()
    made = jnp.array(array, copy=True)
    return jax.random.wrap_key_data(made, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else made
