"""Paths and URLs to file systems: fsspec for what we do ourselves, Arrow's for Parquet."""

from __future__ import annotations

import re
from typing import Any

import fsspec
import pyarrow.fs

# Spark writes file:/tmp/x where others write file:///tmp/x.
_ONE_SLASH = re.compile(r"^([a-z][a-z0-9+.-]*):/(?!/)")
_LOCAL = {"file", "local"}


def as_url(path: str) -> str:
    """Return the path with a protocol, in the form that Spark and fsspec both take."""
    path = _ONE_SLASH.sub(r"\1:///", path)
    if "://" in path:
        return path
    return f"file://{path}"


def open_filesystem(path: str, storage_options: dict[str, Any] | None = None) -> tuple[Any, str]:
    """Return the fsspec file system of a path or URL, and the path inside of it."""
    filesystem, inner = fsspec.core.url_to_fs(_ONE_SLASH.sub(r"\1:///", path), **(storage_options or {}))
    return filesystem, str(inner)


def is_local(filesystem: Any) -> bool:
    """Whether the file system is that of this host."""
    protocol = filesystem.protocol
    names = {protocol} if isinstance(protocol, str) else set(protocol)
    return bool(names & _LOCAL)


def arrow_filesystem(filesystem: Any) -> Any:
    """Return the same file system for Arrow, which reads local files without Python."""
    if is_local(filesystem):
        return pyarrow.fs.LocalFileSystem()
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(filesystem))
