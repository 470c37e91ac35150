"""Where a training loop gets its batches from; derive from DataModule to bring a reader of your own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from ._balance import rows_of_rank
from ._blocks import ColumnPlan
from ._loader import DEFAULT_BUFFER_ROWS, Reading, Shard, ShardLoader
from ._parquet import summarize

_Module = TypeVar("_Module", bound="DataModule")
_Parquet = TypeVar("_Parquet", bound="ParquetDataModule")
_BUFFER_BYTES = 256 << 20


class DataModule(ABC):
    """The data of one rank, as a context: opened before the first epoch, closed after the last.

    `train_data()` and `val_data()` return iterables of batches: mappings from column names to tensors or
    arrays whose first dimension is the row.
    """

    short_name: ClassVar[str | None] = None

    def __init__(
        self,
        train_dir: str,
        val_dir: str | None,
        num_train_epochs: int = 1,
        has_val: bool = True,
        train_batch_size: int = 32,
        val_batch_size: int = 32,
        shuffle: bool = True,
        transform_fn: Any = None,
        inmemory_cache_all: bool = False,
        cur_shard: int = 0,
        shard_count: int = 1,
        schema_fields: Sequence[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        steps_per_epoch_train: int = 1,
        steps_per_epoch_val: int = 1,
        verbose: bool = True,
        **kwargs: Any,
    ) -> None:
        """Keep the parameters; `kwargs` are those of one kind of data module."""
        super().__init__()
        self.train_dir = train_dir
        self.val_dir = val_dir
        self.num_train_epochs = num_train_epochs
        self.has_val = has_val
        self.train_batch_size = train_batch_size
        self.val_batch_size = val_batch_size
        self.shuffle = shuffle
        self.transform_fn = transform_fn
        self.inmemory_cache_all = inmemory_cache_all
        self.cur_shard = cur_shard
        self.shard_count = shard_count
        self.schema_fields = schema_fields
        self.storage_options = storage_options
        self.steps_per_epoch_train = steps_per_epoch_train
        self.steps_per_epoch_val = steps_per_epoch_val
        self.verbose = verbose
        self.options = kwargs

    def __enter__(self: _Module) -> _Module:  # noqa: PYI019 - Python 3.10 has no Self
        """Open what is read."""
        return self

    def __exit__(  # noqa: B027 - there may be nothing to close
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""

    @abstractmethod
    def train_data(self) -> Any:
        """Return the batches that are trained on; without end, or one pass that is started again."""

    @abstractmethod
    def val_data(self) -> Any:
        """Return the batches of one pass over the validation data."""


class ParquetDataModule(DataModule):
    """Reads the Parquet of the store with Arrow: this rank's rows, read ahead by a thread.

    Options: `metadata` (the columns, see get_simple_meta_from_parquet), `dtype` of all columns, `float_dtype`
    of those with floats, `random_seed`,
    `shuffle_buffer_size`, `reader_pool_type` ('dummy': no thread), `train_reader_num_workers`,
    `val_reader_num_workers` (1: Arrow decodes in one thread), `transformation_edit_fields`,
    `transformation_removed_fields`.
    """

    short_name = "parquet"

    def __enter__(self: _Parquet) -> _Parquet:  # noqa: PYI019 - Python 3.10 has no Self
        """Read the footers, which say which rows are this rank's."""
        self._train = self._loader(self.train_dir, train=True)
        self._val: ShardLoader | None = None
        if self.has_val and self.val_dir:
            self._val = self._loader(self.val_dir, train=False)
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads that read."""
        self._train.close()
        if self._val is not None:
            self._val.close()

    def train_data(self) -> Iterator[Mapping[str, Any]]:
        """Return batches without end."""
        return map(self.convert, self._train.endless())

    def val_data(self) -> Iterator[Mapping[str, Any]]:
        """Return the batches of one pass."""
        return map(self.convert, self._val) if self._val is not None else iter(())

    def val_batch_count(self) -> int:
        """Return the batches of one pass over this rank's validation rows."""
        return len(self._val) if self._val is not None else 0

    def convert(self, batch: Mapping[str, Any]) -> Mapping[str, Any]:
        """Turn a batch of arrays into what the framework wants."""
        return batch

    def _loader(self, folder: str, *, train: bool) -> ShardLoader:
        reading = self._reading(self.train_batch_size if train else self.val_batch_size, train=train)
        summary = summarize(folder, self.storage_options)
        slices = rows_of_rank(summary.groups, self.cur_shard, self.shard_count)
        workers = self.options.get(f"{'train' if train else 'val'}_reader_num_workers") or 2
        shard = Shard(summary.filesystem, tuple(slices), self._plan(summary.schema.names), workers > 1)
        row_bytes = max(summary.byte_count // max(summary.row_count, 1), 1)
        limit = max(_BUFFER_BYTES // row_bytes, reading.batch_size)
        if reading.buffer_rows > limit and not self.options.get("shuffle_buffer_size"):
            reading = replace(reading, buffer_rows=limit)
        return ShardLoader(shard, reading)

    def _reading(self, batch_size: int, *, train: bool) -> Reading:
        return Reading(
            batch_size=batch_size,
            shuffle=self.shuffle and train,
            seed=hash((self.options.get("random_seed") or 0, self.cur_shard)) & 0x7FFFFFFF,
            buffer_rows=self.options.get("shuffle_buffer_size") or DEFAULT_BUFFER_ROWS,
            in_memory=self.inmemory_cache_all,
            read_ahead=self.options.get("reader_pool_type", "thread") != "dummy",
        )

    def _plan(self, present: Sequence[str]) -> ColumnPlan:
        names = tuple(self.schema_fields or present)
        missing = [name for name in names if name not in present]
        if missing:
            message = f"the Parquet data at {self.train_dir} has no column {missing}; it has {list(present)}"
            raise ValueError(message)
        metadata = self.options.get("metadata") or {}
        return ColumnPlan(
            names=names,
            sparse_sizes={name: metadata[name]["shape"] for name in names if is_compact(metadata.get(name))},
            dtype=self.options.get("dtype"),
            float_dtype=self.options.get("float_dtype"),
            transformation=self.transform_fn,
            edit_fields=tuple(self.options.get("transformation_edit_fields") or ()),
            removed_fields=tuple(self.options.get("transformation_removed_fields") or ()),
        )


class NVTabularDataModule(DataModule):
    """The name of a reader for GPUs that the original had; it is refused."""

    short_name = "nvtabular"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Refuse."""
        message = "NVTabularDataModule is not supported; the default data module reads Parquet with Arrow"
        raise NotImplementedError(message)

    def train_data(self) -> Any:
        """Return nothing; there is no instance."""

    def val_data(self) -> Any:
        """Return nothing; there is no instance."""


def is_compact(column: Mapping[str, Any] | None) -> bool:
    """Whether the metadata of a column say that it holds sparse vectors in the compact form."""
    return bool(column) and column["intermediate_format"] == "custom_sparse_format"  # type: ignore[index]
