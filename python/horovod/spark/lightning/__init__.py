"""Estimator and model for Lightning on Spark: the module is yours, the training loop is ours.

::

    from horovod.spark.lightning import TorchEstimator

    estimator = TorchEstimator(num_proc=2, store=store, model=MyLightningModule(), input_shapes=[[-1, 2]],
                               feature_cols=["features"], label_cols=["y"], batch_size=32, epochs=10)
    predictions = estimator.fit(train_df).transform(test_df)

`training_step` and `validation_step` get batches as dictionaries from column names to tensors.
"""

from __future__ import annotations

from horovod.spark.common.backend import SparkBackend
from horovod.spark.common.store import DBFSLocalStore, FilesystemStore, HDFSStore, LocalStore, Store

from .estimator import TorchEstimator, TorchModel

__all__ = [
    "DBFSLocalStore",
    "FilesystemStore",
    "HDFSStore",
    "LocalStore",
    "SparkBackend",
    "Store",
    "TorchEstimator",
    "TorchModel",
]
