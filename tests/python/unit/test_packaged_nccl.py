"""NCCL of the package nvidia-nccl-cu12 is named to the core, where nothing else says which to use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from horovod._core.packaged_nccl import VARIABLE, name_packaged_nccl


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
    path.parent.mkdir(parents=True)
    path.touch()
    for package in ("nvidia", "nvidia/nccl"):
        (tmp_path / package / "__init__.py").touch()
    for name in [name for name in sys.modules if name.split(".")[0] == "nvidia"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        "horovod._core.packaged_nccl._is_loaded", lambda: False
    )  # PyTorch may have brought one
    monkeypatch.setenv(VARIABLE, "")  # so that it is put back whatever happens
    monkeypatch.delenv(VARIABLE)
    yield path
    for name in [name for name in sys.modules if name.split(".")[0] == "nvidia"]:
        del sys.modules[name]


def test_the_file_of_the_package_is_named(library: Path) -> None:
    name_packaged_nccl()

    assert os.environ[VARIABLE] == str(library)


def test_a_file_that_the_user_names_stays(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/mine/libnccl.so")

    name_packaged_nccl()

    assert os.environ[VARIABLE] == "/mine/libnccl.so"


def test_without_the_package_nothing_is_named(library: Path) -> None:
    library.unlink()

    name_packaged_nccl()

    assert VARIABLE not in os.environ
