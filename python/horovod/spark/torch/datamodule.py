"""The store's Parquet as batches of PyTorch tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from horovod.spark.common.datamodule import DataModule, NVTabularDataModule, ParquetDataModule

__all__ = ["DataModule", "NVTabularDataModule", "PetastormDataModule", "TorchParquetDataModule"]


class TorchParquetDataModule(ParquetDataModule):
    """Batches are dictionaries of tensors, which share the memory of what was read."""

    def convert(self, batch: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Turn arrays into tensors."""
        return {name: torch.from_numpy(_writable(values)) for name, values in batch.items()}


def _writable(values: Any) -> Any:
    """Return the array, or a copy where it is memory of Arrow, which tensors must not change."""
    return values if values.flags.writeable else values.copy()


# The name that programs import; nothing of Petastorm is used.
PetastormDataModule = TorchParquetDataModule
