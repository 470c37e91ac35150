"""The store's Parquet as batches of tensors, for modules of Lightning."""

from __future__ import annotations

from horovod.spark.common.datamodule import DataModule
from horovod.spark.torch.datamodule import TorchParquetDataModule

__all__ = ["DataModule", "PetastormDataModule"]

# The name that programs import; nothing of Petastorm is used.
PetastormDataModule = TorchParquetDataModule
