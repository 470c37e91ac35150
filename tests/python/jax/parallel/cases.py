"""Values that every rank can compute for every other rank, and the ways a program can run an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import horovod.jax as hvd

REDUCIBLE = [
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]
MOVABLE = [*REDUCIBLE, "bool", "uint32", "uint64", "complex128", "float8_e4m3fn"]
SHAPES = [(), (17,), (0, 3), (2, 2, 2, 2)]
SHAPES_WITH_ROWS = [(17,), (0, 3), (3, 2, 2)]


def eagerly(operation: Callable[..., Any], *arrays: Any) -> Any:
    """Run at once."""
    return operation(*arrays)


def in_jit(operation: Callable[..., Any], *arrays: Any) -> Any:
    """Run as a program."""
    return jax.jit(operation)(*arrays)


def in_scan(operation: Callable[..., Any], *arrays: Any) -> Any:
    """Run in a loop of two turns, of which the second counts."""

    def turn(carry: Any, _: Any) -> tuple[Any, Any]:
        return carry, operation(*arrays)

    results = jax.jit(lambda: jax.lax.scan(turn, jnp.zeros(()), None, length=2)[1])()
    return jax.tree_util.tree_map(lambda result: result[1], results)


WAYS = [eagerly, in_jit, in_scan]


def value_of(rank: int, shape: tuple[int, ...], dtype: str) -> Any:
    """Small integers that differ by rank and place: sums of a few ranks are exact in any dtype."""
    values = (np.arange(int(np.prod(shape))) % 5 + 2 * rank) % 7 + 1
    if dtype == "bool":
        values = values % 2
    array = values.reshape(shape).astype(jnp.dtype(dtype))  # by numpy, which compiles nothing
    return jnp.asarray(array * array.dtype.type(1 + 1j) if dtype.startswith("complex") else array)


def reduced(ranks: list[int], shape: tuple[int, ...], dtype: str, how: Callable[..., Any]) -> np.ndarray:
    """Return what numpy makes of the values of ranks, computed in double precision."""
    wide = "complex128" if dtype.startswith("complex") else "float64"
    stacked = np.stack([np.asarray(value_of(rank, shape, wide)) for rank in ranks])
    return np.asarray(how(stacked, axis=0))


def everybody() -> list[int]:
    """Return all ranks."""
    return list(range(hvd.size()))


def assert_same(actual: Any, expected: Any, dtype: str | None = None) -> None:
    """Compare shape and values, and the dtype if one is given."""
    assert dtype is None or str(actual.dtype) == dtype
    assert actual.shape == np.shape(expected)
    wide = np.complex128 if jnp.iscomplexobj(actual) else np.float64
    np.testing.assert_allclose(np.asarray(actual).astype(wide), np.asarray(expected).astype(wide), rtol=1e-2)
