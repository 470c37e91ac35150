"""A file system that is not the local one for Spark, fsspec or Arrow, though its files lie in a folder here.

Hadoop's ViewFileSystem is Spark's side of `viewfs://tables/...`; this is that of fsspec. As with the package
of any other one, processes find the class by an entry point in their path.
"""

from __future__ import annotations

import os
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

URL = "viewfs://tables"
ROOT_VARIABLE = "VIEWED_FILES_ROOT"
ENTRY_POINT = "[fsspec.specs]\nviewfs = viewed_files:ViewedFiles\n"


def mount(spark, root):
    """Make the folder known to Spark; the entry point is written to `root`.packages, which is returned."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set("fs.viewfs.mounttable.tables.link./data", f"file://{root}/data")
    settings.set("fs.viewfs.impl.disable.cache", "true")  # the next test has another folder
    (root / "data").mkdir(parents=True)
    (root / "readers").mkdir()
    packages = root.with_suffix(".packages")
    description = packages / "viewed_files-1.0.dist-info"
    description.mkdir(parents=True)
    (description / "METADATA").write_text("Metadata-Version: 2.1\nName: viewed-files\nVersion: 1.0\n")
    (description / "entry_points.txt").write_text(ENTRY_POINT)
    return packages


class ViewedFiles(LocalFileSystem):
    """Leaves a file for each process that has opened one through it."""

    protocol = "viewfs"

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        path = os.fspath(path)
        if path.startswith(URL):
            path = os.environ[ROOT_VARIABLE] + path.removeprefix(URL)
        return path.rstrip("/")

    def _open(self, path, mode="rb", **options):
        Path(os.environ[ROOT_VARIABLE], "readers", str(os.getpid())).touch()
        return super()._open(path, mode, **options)
