"""Leaves of pytrees as arrays that the core can take, and back.

Complex numbers travel as pairs, random keys as their data. Python numbers become arrays; other leaves
(functions of an Equinox module, strings) stay what they are.
"""

from __future__ import annotations

import functools
import logging
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._checks import check_array

_logger = logging.getLogger("horovod")
Restore = Callable[[Any], Any]


def is_array(leaf: Any) -> bool:
    """Return whether a leaf has something that ranks can exchange."""
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, numbers.Number))


def _from_pairs(pairs: Any) -> Any:
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


def as_plain(operation: str, leaf: Any) -> tuple[Any, Restore | None]:
    """Return an array of numbers, and how a result becomes like the leaf; None: it is already."""
    if not is_array(leaf):
        message = f"{operation}: expected arrays and numbers, got {type(leaf).__name__}"
        raise TypeError(message)
    check_array(operation, leaf)
    array = leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf)
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        implementation = jax.random.key_impl(array)
        data = jax.random.key_data(array)
        return data, lambda result: jax.random.wrap_key_data(result, impl=implementation)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        return jnp.stack([array.real, array.imag], axis=-1), _from_pairs
    return array, None


def restored(results: Sequence[Any], restores: Sequence[Restore | None]) -> list[Any]:
    """Undo as_plain."""
    return [
        result if restore is None else restore(result)
        for result, restore in zip(results, restores, strict=True)
    ]


def is_traced(leaves: Sequence[Any]) -> bool:
    """Return whether what is done with the leaves becomes part of a program."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return True
    return _under_jit()()


@functools.cache
def _under_jit() -> Callable[[], bool]:
    """Return JAX's own test for a program that uses none of its arguments; slow to import.

    JAX 0.6 has it in jax.core alone.
    """
    import jax.extend.core as extend  # noqa: PLC0415

    found: Callable[[], bool] | None = None
    for module in (extend, jax.core):
        found = found or getattr(module, "unsafe_am_i_under_a_jit_DO_NOT_USE", None)
    if found is None:
        _logger.warning(
            "JAX %s does not say whether a function is being traced: inside of jit, call collectives on "
            "arguments of the function, and hvd.barrier() and hvd.join() outside",
            jax.__version__,
        )
        return lambda: False
    return found
