"""Values that every rank can compute for every other rank, so that results can be checked locally."""

from __future__ import annotations

import mxnet as mx
import numpy as np

import horovod.mxnet as hvd

DTYPES = ["uint8", "int8", "int32", "int64", "float16", "float32", "float64"]
FLOAT_DTYPES = ["float16", "float32", "float64"]
SHAPES = [(1,), (17,), (5, 3), (4, 3, 2), (2, 2, 2, 2, 2)]


def numbers_of(rank: int, shape: tuple[int, ...]) -> np.ndarray:
    """Small integers that differ by rank and place: sums of a few ranks are exact in any dtype."""
    places = np.arange(int(np.prod(shape)), dtype=np.int64) % 5
    return ((places + 2 * rank) % 7 + 1).reshape(shape)


def value_of(rank: int, shape: tuple[int, ...], dtype: str) -> mx.nd.NDArray:
    return mx.nd.array(numbers_of(rank, shape), dtype=dtype)


def sum_of(ranks: list[int], shape: tuple[int, ...]) -> np.ndarray:
    return np.sum([numbers_of(rank, shape) for rank in ranks], axis=0)


def everybody() -> list[int]:
    return list(range(hvd.size()))


def assert_same(actual: mx.nd.NDArray, expected: np.ndarray, dtype: str | None = None) -> None:
    """Compare values and shape; reading waits for the operation."""
    assert actual.shape == expected.shape
    if dtype is not None:
        assert np.dtype(actual.dtype) == np.dtype(dtype)
    np.testing.assert_allclose(actual.asnumpy().astype(np.float64), expected, rtol=1e-3)
