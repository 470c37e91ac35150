"""Batch normalization with statistics over all ranks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ._reductions import grouped_allreduce
from .mpi_ops import Sum, size


def _synchronized(mean: Any, variance: Any) -> tuple[Any, Any]:
    """Return the moments of all ranks' batches from those of this one, each rank counted alike."""
    if size() <= 1:
        return mean, variance
    mean_of_squares = variance + tf.square(mean)
    summed = grouped_allreduce([mean, mean_of_squares], op=Sum)
    mean_all, squares_all = (total / size() for total in summed)
    return mean_all, squares_all - tf.square(mean_all)


class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    """Normalizes by mean and variance over all ranks while training.

    Arguments:
        fused: must be False: there is no fused form.

    Raises:
        ValueError: `fused` is True or None.

    """

    def __init__(self, fused: bool | None = False, **kwargs: Any) -> None:
        """Take the parameters of tf.keras.layers.BatchNormalization, but for `fused`."""
        if fused in (True, None):
            message = f"SyncBatchNormalization does not support fused=True, got fused={fused}"
            raise ValueError(message)
        kwargs.setdefault("name", "sync_batch_normalization")
        if not hasattr(tf.keras.layers.Layer, "stateless_call"):  # Keras 2
            kwargs["fused"] = False
        super().__init__(**kwargs)

    def _moments(self, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        mean, variance = super()._moments(inputs, *args, **kwargs)
        return _synchronized(mean, variance)
