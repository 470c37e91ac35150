"""The store's Parquet as batches of arrays, which Keras takes on every backend."""

from __future__ import annotations

from horovod.spark.common.datamodule import DataModule, NVTabularDataModule, ParquetDataModule

__all__ = ["DataModule", "KerasParquetDataModule", "NVTabularDataModule", "PetastormDataModule"]


class KerasParquetDataModule(ParquetDataModule):
    """Batches are dictionaries of arrays."""


# The name that programs import; nothing of Petastorm is used.
PetastormDataModule = KerasParquetDataModule
