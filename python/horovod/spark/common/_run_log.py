"""Checkpoints and logs of a run: rank 0 writes them, and copies them to the store after each epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._remote_store import RemoteStore

_METRICS_FILE = "metrics.jsonl"


class RunFiles:
    """The local folder of a run. Used by one thread."""

    def __init__(self, folder: str, store: RemoteStore) -> None:
        """Write into a folder that exists."""
        self._folder = Path(folder)
        self._store = store
        self.logs = self._folder / store.logs_subdir
        self.logs.mkdir(exist_ok=True)
        self._metrics = self.logs / _METRICS_FILE
        # A run that goes on keeps what was logged before, and counts on from there.
        earlier = store.fetch(f"{store.logs_subdir}/{_METRICS_FILE}") or b""
        self._metrics.write_bytes(earlier)
        self._first_epoch = len(earlier.splitlines())

    @staticmethod
    @contextmanager
    def on_rank(rank: int, store: RemoteStore) -> Iterator[RunFiles | None]:
        """Give rank 0 its files, if the store keeps runs; others None."""
        if rank != 0 or not store.saving_runs:
            yield None
            return
        with store.get_local_output_dir() as folder:
            yield RunFiles(folder, store)

    def epoch(self, metrics: dict[str, Any], checkpoint: bytes) -> None:
        """Keep the state after an epoch of this fit, and a line of its metrics."""
        (self._folder / self._store.checkpoint_filename).write_bytes(checkpoint)
        line = {**metrics, "epoch": self._first_epoch + metrics["epoch"]}
        with self._metrics.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.sync()

    def write(self, name: str, content: bytes) -> None:
        """Write a file beside the checkpoint; `epoch` copies it."""
        (self._folder / name).write_bytes(content)

    def sync(self) -> None:
        """Copy everything to the store."""
        self._store.sync(str(self._folder))
