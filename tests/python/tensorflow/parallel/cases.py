"""Values that every rank can compute for every other rank, and the ways a program can run an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd

REDUCIBLE = [
    tf.uint8,
    tf.int8,
    tf.uint16,
    tf.int16,
    tf.int32,
    tf.int64,
    tf.float16,
    tf.bfloat16,
    tf.float32,
    tf.float64,
]
MOVABLE = [*REDUCIBLE, tf.bool]
SHAPES = [(), (17,), (5, 3), (0, 3), (2, 2, 2, 2)]
SHAPES_WITH_ROWS = [(17,), (5, 3), (0, 3), (3, 2, 2)]


def eagerly(operation: Callable[..., Any], *tensors: Any) -> Any:
    """Run at once."""
    return tf.nest.map_structure(lambda t: t.numpy(), operation(*[tf.constant(t) for t in tensors]))


def in_function(operation: Callable[..., Any], *tensors: Any) -> Any:
    """Run in a tf.function, whose inputs are no constants."""
    compiled = tf.function(operation)
    return tf.nest.map_structure(lambda t: t.numpy(), compiled(*[tf.constant(t) for t in tensors]))


def in_session(operation: Callable[..., Any], *tensors: Any) -> Any:
    """Run in a session of TensorFlow 1."""
    with tf.Graph().as_default():
        places = [tf.compat.v1.placeholder(tf.as_dtype(t.dtype), t.shape) for t in tensors]
        results = operation(*places)
        with tf.compat.v1.Session() as session:
            return session.run(results, dict(zip(places, tensors, strict=True)))


WAYS = [eagerly, in_function, in_session]


def value_of(rank: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Small integers that differ by rank and place: sums of a few ranks are exact in any dtype."""
    count = int(np.prod(shape))
    values = (np.arange(count) % 5 + 2 * rank) % 7 + 1
    if dtype == tf.bool:
        values = values % 2
    return values.reshape(shape).astype(dtype.as_numpy_dtype)


def sum_of(ranks: list[int], shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return the sum over ranks, computed in float64."""
    total = sum(value_of(rank, shape, tf.float64) for rank in ranks)
    return np.asarray(total).astype(dtype.as_numpy_dtype)


def everybody() -> list[int]:
    """Return all ranks."""
    return list(range(hvd.size()))


def assert_same(actual: Any, expected: Any) -> None:
    """Compare values, dtype and shape."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=1e-2)
