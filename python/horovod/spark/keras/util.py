"""Names that tests of the original import; the estimator itself needs none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from horovod.spark.common import _sparse
from horovod.spark.common.serialization import as_text

__all__ = ["TFKerasUtil"]


class TFKerasUtil:
    """Empty: it made pipelines of tf.data from Petastorm's readers, which do not take part here."""


def _serialize_param_value(
    param_name: str,
    param_val: Any,
    serialize_model_fn: Callable[[Any], str] | None,
    serialize_opt_fn: Callable[[Any], str] | None,
) -> str | None:
    """Return the value of a parameter as text, models and optimizers by functions of their own."""
    own = {"model": serialize_model_fn, "optimizer": serialize_opt_fn}.get(param_name)
    if own is not None and param_val is not None:
        return own(param_val)
    return as_text(param_name, param_val)


def _custom_sparse_to_dense_fn() -> Callable[[Any, int], Any]:
    """Return a function from vectors in the compact form, and their size, to a tensor of dense rows."""

    def to_dense(vectors: Any, size: int) -> Any:
        import tensorflow as tf  # noqa: PLC0415 - Keras may have another backend

        return tf.convert_to_tensor(_sparse.decode(np.atleast_2d(np.asarray(vectors)), size))

    return to_dense
