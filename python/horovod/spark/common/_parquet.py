"""What a Parquet data set holds, from the footers of its files alone."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ._balance import RowGroup
from ._filesystems import arrow_filesystem, open_filesystem

# Footers of remote files are waited for, not computed.
_FOOTERS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class ParquetSummary:
    """The schema, row groups and nulls of a data set; `filesystem` is Arrow's."""

    filesystem: Any
    schema: pa.Schema
    groups: tuple[RowGroup, ...]
    byte_count: int
    null_counts: dict[str, int]

    @property
    def row_count(self) -> int:
        """The rows of all files."""
        return sum(group.row_count for group in self.groups)


def is_data_file(path: str) -> bool:
    """Whether Spark and Arrow would read the file: those of bookkeeping begin with `_` or `.`."""
    name = path.rsplit("/", 1)[-1]
    return name.endswith((".parquet", ".parq")) and not name.startswith(("_", "."))


def data_files(path: str, storage_options: dict[str, Any] | None = None) -> tuple[Any, list[str]]:
    """Return the fsspec file system of a data set and its files, in the same order everywhere."""
    filesystem, inner = open_filesystem(path, storage_options)
    filesystem.invalidate_cache()
    if not filesystem.exists(inner):
        message = f"no Parquet data at {path}: the folder does not exist"
        raise FileNotFoundError(message)
    found = [inner] if filesystem.isfile(inner) else filesystem.find(inner)
    return filesystem, sorted(str(name) for name in found if is_data_file(str(name)))


def summarize(path: str, storage_options: dict[str, Any] | None = None) -> ParquetSummary:
    """Read the footers of all files."""
    filesystem, files = data_files(path, storage_options)
    if not files:
        message = f"no Parquet data at {path}: the folder has no files that end in .parquet"
        raise FileNotFoundError(message)
    arrow = arrow_filesystem(filesystem)
    with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, len(files))) as pool:
        footers = list(pool.map(lambda name: pq.read_metadata(name, filesystem=arrow), files))
    groups = []
    null_counts: Counter[str] = Counter()
    byte_count = 0
    for name, footer in zip(files, footers, strict=True):
        for index in range(footer.num_row_groups):
            group = footer.row_group(index)
            byte_count += group.total_byte_size
            null_counts.update(_nulls(group))
            if group.num_rows:
                groups.append(RowGroup(name, index, group.num_rows))
    return ParquetSummary(arrow, footers[0].schema.to_arrow_schema(), tuple(groups), byte_count, +null_counts)


def _nulls(group: Any) -> Counter[str]:
    """Count nulls by top-level column; a null inside of an array is one, too."""
    counts: Counter[str] = Counter()
    for index in range(group.num_columns):
        column = group.column(index)
        statistics = column.statistics
        if statistics is not None and statistics.has_null_count:
            counts[column.path_in_schema.split(".")[0]] += statistics.null_count
    return counts


def check_no_nulls(summary: ParquetSummary, columns: list[str], where: str) -> None:
    """Raise ValueError where a column that is needed has nulls."""
    found = {name: summary.null_counts[name] for name in columns if summary.null_counts.get(name)}
    if found:
        listed = ", ".join(f"'{name}' ({count} of {summary.row_count} rows)" for name, count in found.items())
        message = (
            f"the {where} data has nulls, which cannot be trained on: column {listed}; "
            "fill them (df.fillna) or drop their rows (df.dropna)"
        )
        raise ValueError(message)
