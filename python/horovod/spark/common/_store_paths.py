"""The forms of paths that stores accept. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

# dbfs://name/ would name a host, which DBFS has none of.
_DBFS = re.compile(r"^(?:/dbfs/|dbfs:/(?!/[^/])/*|file:/dbfs/|file:///dbfs/)")
HDFS_SCHEME = "hdfs://"


@dataclass(frozen=True, slots=True)
class HdfsPath:
    """A path of HDFS; without a host the default name node of the configuration is meant."""

    host: str | None
    port: int | None
    path: str

    @property
    def url_prefix(self) -> str:
        """What stands before paths: hdfs:// and the name node, if one is named."""
        port = f":{self.port}" if self.port is not None else ""
        return f"{HDFS_SCHEME}{self.host or ''}{port}"


def parse_hdfs(text: str) -> HdfsPath:
    """Read hdfs://host:port/path, hdfs:///path or /path."""
    if "://" not in text:
        if not text.startswith("/"):
            message = f"HDFS path '{text}' must be hdfs://host:port/path, hdfs:///path or /path"
            raise ValueError(message)
        return HdfsPath(None, None, text)
    parts = urlsplit(text)
    if parts.scheme != "hdfs":
        message = f"HDFS path '{text}' has the scheme {parts.scheme}://, expected {HDFS_SCHEME}"
        raise ValueError(message)
    if not parts.path:
        message = f"HDFS path '{text}' names no folder: expected hdfs://host:port/path"
        raise ValueError(message)
    return HdfsPath(parts.hostname, parts.port, parts.path)


def is_dbfs(text: str) -> bool:
    """Whether this is a path of the Databricks file system."""
    return _DBFS.match(text) is not None


def dbfs_to_local(text: str) -> str:
    """Return where a path of DBFS is mounted on every node."""
    match = _DBFS.match(text)
    if match is None:
        message = (
            f"DBFS path '{text}' must begin with /dbfs/, dbfs:/, file:/dbfs/ or file:///dbfs/; "
            "for other paths use Store.create(path) or FilesystemStore(path)"
        )
        raise ValueError(message)
    return f"/dbfs/{text[match.end() :]}"
