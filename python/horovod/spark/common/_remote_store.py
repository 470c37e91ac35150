"""What ranks need of a store: its paths, and how files get there. Made by the driver, pickled to ranks."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._filesystems import open_filesystem
from ._parquet import data_files


@contextmanager
def local_output_dir() -> Iterator[str]:
    """Make a local folder for the files of a run."""
    with tempfile.TemporaryDirectory(prefix="horovod-run-") as folder:
        yield folder


def upload(local_path: str, run_path: str, storage_options: dict[str, Any] | None) -> None:
    """Copy all files below a local folder to the folder of a run, each under a temporary name first.

    A checkpoint is replaced in one step where the file system can rename, so that a run which dies while
    it writes leaves the one before.
    """
    filesystem, target = open_filesystem(run_path, storage_options)
    for folder, _, names in os.walk(local_path):
        below = os.path.relpath(folder, local_path)
        for name in names:
            wanted = "/".join(part for part in (target, *Path(below).parts, name) if part != ".")
            parent = wanted.rsplit("/", 1)[0]
            filesystem.makedirs(parent, exist_ok=True)
            temporary = f"{parent}/.{name}.incomplete"
            filesystem.put_file(str(Path(folder) / name), temporary)
            filesystem.mv(temporary, wanted)


@dataclass(frozen=True, slots=True)
class RemoteStore:
    """Paths of one run and one data set."""

    train_data_path: str
    val_data_path: str
    test_data_path: str
    saving_runs: bool
    runs_path: str
    run_path: str
    checkpoint_path: str | None
    logs_path: str | None
    checkpoint_filename: str
    logs_subdir: str
    storage_options: dict[str, Any] | None = None

    def get_local_output_dir(self) -> AbstractContextManager[str]:
        """Make a local folder, which is removed at the end of its `with`."""
        return local_output_dir()

    def fetch(self, name: str) -> bytes | None:
        """Return a file of the run, or None if there is none yet."""
        filesystem, folder = open_filesystem(self.run_path, self.storage_options)
        path = f"{folder}/{name}"
        content: bytes | None = filesystem.cat_file(path) if filesystem.exists(path) else None
        return content

    def sync(self, local_path: str) -> None:
        """Copy a local folder to that of the run."""
        upload(local_path, self.run_path, self.storage_options)

    def check_reachable(self, rank: int) -> None:
        """Raise where this process does not see the data that the driver has seen."""
        try:
            files = data_files(self.train_data_path, self.storage_options)[1]
        except (OSError, ImportError) as error:
            files, reason = [], f": {error}"
        else:
            reason = ": there are no Parquet files"
        if not files:
            message = (
                f"rank {rank} on {socket.gethostname()} cannot read the store's data at "
                f"{self.train_data_path}{reason}; the store must be a folder that the driver and all "
                "executors reach: a local path works on one machine, "
                "or where it is mounted on all (see Store.create)"
            )
            raise RuntimeError(message)
