"""Where estimators keep data, checkpoints and logs: a folder that the driver and all executors reach.

::

    store = Store.create("hdfs:///tmp/experiments")    # or a local folder, s3://..., anything of fsspec
"""

from __future__ import annotations

import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from horovod.runner.common.util.host_hash import host_hash

from ._filesystems import as_url, open_filesystem
from ._parquet import data_files
from ._remote_store import RemoteStore, local_output_dir, upload
from ._store_paths import HDFS_SCHEME, dbfs_to_local, is_dbfs, parse_hdfs

_DATABRICKS_VARIABLE = "DATABRICKS_RUNTIME_VERSION"


class Store(ABC):
    """The interface of stores; `Store.create(path)` chooses one for a path."""

    @staticmethod
    def create(prefix_path: str, *args: Any, **kwargs: Any) -> AbstractFilesystemStore:
        """Return HDFSStore for hdfs://, DBFSLocalStore for DBFS on Databricks, else FilesystemStore."""
        prefix_path = os.fspath(prefix_path)
        if prefix_path.startswith(HDFS_SCHEME):
            return HDFSStore(prefix_path, *args, **kwargs)
        if _DATABRICKS_VARIABLE in os.environ and is_dbfs(prefix_path):
            return DBFSLocalStore(prefix_path, *args, **kwargs)
        return FilesystemStore(prefix_path, *args, **kwargs)

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""

    @abstractmethod
    def write_text(self, path: str, text: str) -> None:
        """Write a file."""

    @abstractmethod
    def is_parquet_dataset(self, path: str) -> bool:
        """Whether there is Parquet that can be read."""


class AbstractFilesystemStore(Store):
    """A store in folders of one file system; derived classes say which."""

    _default_checkpoint_filename = "checkpoint"

    def __init__(
        self,
        prefix_path: str,
        train_path: str | None = None,
        val_path: str | None = None,
        test_path: str | None = None,
        runs_path: str | None = None,
        save_runs: bool = True,
        storage_options: dict[str, Any] | None = None,
        checkpoint_filename: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Paths that are not given lie below `prefix_path`; `kwargs` are of no consequence."""
        del kwargs
        self.prefix_path = self.get_full_path(prefix_path)
        self._train_path = self._path_or(train_path, "intermediate_train_data")
        self._val_path = self._path_or(val_path, "intermediate_val_data")
        self._test_path = self._path_or(test_path, "intermediate_test_data")
        self._runs_path = self._path_or(runs_path, "runs")
        self._save_runs = save_runs
        self.storage_options = storage_options
        self._checkpoint_filename = checkpoint_filename or self._default_checkpoint_filename

    def _path_or(self, path: str | None, name: str) -> str:
        return self.get_full_path(path) if path else f"{self.prefix_path.rstrip('/')}/{name}"

    def get_full_path(self, path: str) -> str:
        """Return a path in the form that Spark and fsspec take."""
        return as_url(os.fspath(path))

    @property
    def fs(self) -> Any:
        """The fsspec file system."""
        return open_filesystem(self.prefix_path, self.storage_options)[0]

    def get_localized_path(self, path: str) -> str:
        """Return a path as the file system knows it, without protocol."""
        return str(self.fs._strip_protocol(path))  # noqa: SLF001 - fsspec has no public name for it

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        filesystem = self.fs
        filesystem.invalidate_cache()
        return bool(filesystem.exists(self.get_localized_path(path)))

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""
        with self.fs.open(self.get_localized_path(path), "rb") as file:
            return bytes(file.read())

    def write_text(self, path: str, text: str) -> None:
        """Write a file, and the folder that it is in."""
        inner = self.get_localized_path(path)
        filesystem = self.fs
        filesystem.makedirs(inner.rsplit("/", 1)[0], exist_ok=True)
        with filesystem.open(inner, "w") as file:
            file.write(text)

    def check_writable(self, folder: str) -> None:
        """Raise RuntimeError where this process cannot write to a folder: makes a file, and removes it."""
        try:
            filesystem, inner = open_filesystem(folder, self.storage_options)
            filesystem.makedirs(inner, exist_ok=True)
            probe = f"{inner.rstrip('/')}/.horovod-{uuid.uuid4().hex}"
            with filesystem.open(probe, "wb") as file:
                file.write(b"1")
        except Exception as error:
            message = (
                f"the driver cannot write to the store at {folder}: {type(error).__name__}: {error}; the "
                "store must be a folder that the driver and all executors reach (see Store.create)"
            )
            raise RuntimeError(message) from error
        with suppress(Exception):  # it can be written to: that is all we wanted to know
            filesystem.rm(probe)

    def is_parquet_dataset(self, path: str) -> bool:
        """Whether there is at least one Parquet file."""
        try:
            return bool(data_files(self.get_full_path(path), self.storage_options)[1])
        except OSError:
            return False

    def get_parquet_dataset(self, path: str) -> Any:
        """Return the data set for pyarrow.dataset."""
        import pyarrow.dataset as ds  # noqa: PLC0415 - only this needs it

        filesystem, files = data_files(self.get_full_path(path), self.storage_options)
        return ds.dataset(files, filesystem=filesystem, format="parquet")

    def get_train_data_path(self, idx: int | None = None) -> str:
        """Return where training data is; data sets of several `fit` at a time have numbers."""
        return _numbered(self._train_path, idx)

    def get_val_data_path(self, idx: int | None = None) -> str:
        """Return where validation data is."""
        return _numbered(self._val_path, idx)

    def get_test_data_path(self, idx: int | None = None) -> str:
        """Return where test data is."""
        return _numbered(self._test_path, idx)

    def get_data_metadata_path(self, path: str) -> str:
        """Return a name for what is known about a data set, on this host."""
        return f"{path.rstrip('/')}_{host_hash()}_cached_metadata.pkl"

    def saving_runs(self) -> bool:
        """Whether checkpoints and logs are kept."""
        return self._save_runs

    def get_runs_path(self) -> str:
        """Return the folder of all runs."""
        return self._runs_path

    def get_run_path(self, run_id: str) -> str:
        """Return the folder of a run."""
        return f"{self._runs_path.rstrip('/')}/{run_id}"

    def get_checkpoint_path(self, run_id: str) -> str | None:
        """Return the checkpoint of a run; None if runs are not kept."""
        return f"{self.get_run_path(run_id)}/{self._checkpoint_filename}" if self._save_runs else None

    def get_checkpoints(self, run_id: str, suffix: str = ".ckpt") -> list[str]:
        """Return the files of a run that end in `suffix`, oldest names first."""
        inner = self.get_localized_path(self.get_run_path(run_id))
        filesystem = self.fs
        if not filesystem.exists(inner):
            return []
        return sorted(str(name) for name in filesystem.find(inner) if str(name).endswith(suffix))

    def get_logs_path(self, run_id: str) -> str | None:
        """Return the folder of a run's logs; None if runs are not kept."""
        return f"{self.get_run_path(run_id)}/{self.get_logs_subdir()}" if self._save_runs else None

    def get_checkpoint_filename(self) -> str:
        """Return the name of checkpoints."""
        return self._checkpoint_filename

    def get_logs_subdir(self) -> str:
        """Return the name of the folder of logs."""
        return "logs"

    def get_local_output_dir_fn(self, run_id: str) -> Callable[[], AbstractContextManager[str]]:
        """Return a function that makes a local folder, which is removed at the end of its `with`."""
        del run_id
        return local_output_dir

    def sync_fn(self, run_id: str) -> Callable[[str], None]:
        """Return a function that copies a local folder to the folder of the run."""
        run_path, options = self.get_run_path(run_id), self.storage_options
        return lambda local_path: upload(local_path, run_path, options)

    def to_remote(self, run_id: str, dataset_idx: int | None) -> RemoteStore:
        """Return what ranks need of the store."""
        return RemoteStore(
            train_data_path=self.get_train_data_path(dataset_idx),
            val_data_path=self.get_val_data_path(dataset_idx),
            test_data_path=self.get_test_data_path(dataset_idx),
            saving_runs=self.saving_runs(),
            runs_path=self.get_runs_path(),
            run_path=self.get_run_path(run_id),
            checkpoint_path=self.get_checkpoint_path(run_id),
            logs_path=self.get_logs_path(run_id),
            checkpoint_filename=self.get_checkpoint_filename(),
            logs_subdir=self.get_logs_subdir(),
            storage_options=self.storage_options,
        )

    def read_serialized_keras_model(self, ckpt_path: str, model: Any, custom_objects: Any = None) -> bytes:
        """Return the bytes of a checkpoint that KerasEstimator wrote."""
        del model, custom_objects
        return self.read(ckpt_path)


def _numbered(path: str, idx: int | None) -> str:
    return path if idx is None else f"{path}.{idx}"


class FilesystemStore(AbstractFilesystemStore):
    """A store in any file system that fsspec opens; a path without a protocol is a local one."""

    @classmethod
    def matches(cls, path: str) -> bool:
        """Whether this class takes the path: it takes all."""
        del path
        return True


class LocalStore(FilesystemStore):
    """The former name of FilesystemStore."""


class HDFSStore(AbstractFilesystemStore):
    """A store in HDFS, reached through libhdfs; connects when it is first used."""

    FS_PREFIX = HDFS_SCHEME

    def __init__(
        self,
        prefix_path: str,
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        kerb_ticket: str | None = None,
        driver: str = "libhdfs",
        extra_conf: dict[str, str] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Take the name node from the path, else `host` and `port`, else the configuration of Hadoop."""
        if driver != "libhdfs":
            message = f"HDFSStore has the driver libhdfs alone, got {driver!r}"
            raise ValueError(message)
        parsed = parse_hdfs(prefix_path)
        self._host = parsed.host or host
        self._port = parsed.port if parsed.port is not None else port
        options = {"user": user, "kerb_ticket": kerb_ticket, "extra_conf": extra_conf}
        given = {name: value for name, value in options.items() if value is not None}
        kwargs["storage_options"] = {**given, **(kwargs.get("storage_options") or {})} or None
        super().__init__(prefix_path, *args, **kwargs)

    def get_full_path(self, path: str) -> str:
        """Return a path as hdfs://host:port/path."""
        parsed = parse_hdfs(path)
        host = parsed.host or self._host
        port = parsed.port if parsed.port is not None else self._port
        return f"{type(parsed)(host, port, parsed.path).url_prefix}{parsed.path}"

    def get_localized_path(self, path: str) -> str:
        """Return a path without protocol and name node; connects to nothing."""
        return parse_hdfs(path).path

    @classmethod
    def matches(cls, path: str) -> bool:
        """Whether the path is one of HDFS."""
        return path.startswith(HDFS_SCHEME)


class DBFSLocalStore(FilesystemStore):
    """A store in the Databricks file system, through the folder /dbfs of every node."""

    _default_checkpoint_filename = "checkpoint.tf"

    def get_full_path(self, path: str) -> str:
        """Return any form of a DBFS path as file:///dbfs/..."""
        return as_url(dbfs_to_local(path))

    @classmethod
    def matches(cls, path: str) -> bool:
        """Whether the path is one of DBFS."""
        return is_dbfs(path)

    @staticmethod
    def matches_dbfs(path: str) -> bool:
        """Whether the path is one of DBFS."""
        return is_dbfs(path)

    @staticmethod
    def normalize_path(path: str) -> str:
        """Return any form of a DBFS path as /dbfs/...; ValueError for other paths."""
        return dbfs_to_local(path)
