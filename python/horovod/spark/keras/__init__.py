"""Estimator and model for Keras on Spark: Keras 3 on TensorFlow, PyTorch or JAX, and tf_keras.

::

    from horovod.spark.keras import KerasEstimator

    estimator = KerasEstimator(num_proc=2, store=store, model=model, optimizer="adam", loss="mse",
                               feature_cols=["features"], label_cols=["y"], batch_size=32, epochs=10)
    predictions = estimator.fit(train_df).transform(test_df)

Keras itself is imported by what needs it: on executors its backend must be chosen first.
"""

from __future__ import annotations

from typing import Any

from horovod.spark.common.backend import SparkBackend
from horovod.spark.common.store import DBFSLocalStore, FilesystemStore, HDFSStore, LocalStore, Store

from .estimator import KerasEstimator, KerasModel

__all__ = [
    "Compression",
    "DBFSLocalStore",
    "FilesystemStore",
    "HDFSStore",
    "KerasEstimator",
    "KerasModel",
    "LocalStore",
    "SparkBackend",
    "Store",
]


def __getattr__(name: str) -> Any:
    """Resolve `Compression` at first use, for it imports Keras."""
    if name == "Compression":
        from horovod.keras import Compression  # noqa: PLC0415

        return Compression
    message = f"module 'horovod.spark.keras' has no attribute {name!r}"
    raise AttributeError(message)
