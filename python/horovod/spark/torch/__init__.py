"""Estimator and model for PyTorch on Spark.

::

    from horovod.spark.torch import TorchEstimator

    estimator = TorchEstimator(num_proc=2, store=store, model=model, optimizer=optimizer, loss=nn.MSELoss(),
                               input_shapes=[[-1, 2]], feature_cols=["features"], label_cols=["y"], epochs=10)
    predictions = estimator.fit(train_df).transform(test_df)
"""

from __future__ import annotations

from horovod.spark.common.backend import SparkBackend
from horovod.spark.common.store import DBFSLocalStore, FilesystemStore, HDFSStore, LocalStore, Store
from horovod.torch.compression import Compression

from .estimator import TorchEstimator, TorchModel

__all__ = [
    "Compression",
    "DBFSLocalStore",
    "FilesystemStore",
    "HDFSStore",
    "LocalStore",
    "SparkBackend",
    "Store",
    "TorchEstimator",
    "TorchModel",
]
