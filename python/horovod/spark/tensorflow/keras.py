"""A Keras callback that shows the progress of training where the job was started."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import keras

from horovod.spark._worker import log_to_driver

__all__ = ["LogCallback"]


def _text(logs: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name}: {float(value):.6g}" for name, value in (logs or {}).items())


class LogCallback(keras.callbacks.Callback):
    """Says on the driver when epochs begin and end, with their metrics; give it to rank 0."""

    def __init__(self, per_batch_log: bool = False) -> None:
        """`per_batch_log`: also after every batch."""
        super().__init__()
        self._per_batch_log = per_batch_log
        self._began = 0.0

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Say which epoch it is."""
        del logs
        self._began = time.monotonic()
        log_to_driver(f"Epoch {epoch} begins")

    def on_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Say the metrics so far, if that is wanted."""
        if self._per_batch_log:
            log_to_driver(f"Batch {batch}: {_text(logs)}")

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Say its metrics, and how long it took."""
        log_to_driver(f"Epoch {epoch} ended after {time.monotonic() - self._began:.1f} s: {_text(logs)}")
