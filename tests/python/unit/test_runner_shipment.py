"""A function reaches its workers, and nobody else's file is taken for it."""

from __future__ import annotations

import os
import pickle
import stat
import sys
from pathlib import Path

import pytest

from horovod.runner._shipment import (
    Call,
    Failure,
    load_call,
    load_failures,
    load_result,
    store_call,
    store_failure,
    store_result,
)


def stored(folder: Path) -> str:
    return store_call(folder, Call.of(lambda a, b: a + b, (1,), {"b": 2}, ["/p"]))


def test_a_function_keeps_its_arguments_and_the_way_to_its_modules(tmp_path: Path) -> None:
    digest = stored(tmp_path)

    call = load_call(tmp_path, digest)

    func, args, kwargs = call.unpickle()
    assert func(*args, **kwargs) == 3
    assert call.path == ["/p"]
    assert stat.S_IMODE((tmp_path / "function").stat().st_mode) == 0o600


def test_another_content_is_refused(tmp_path: Path) -> None:
    digest = stored(tmp_path)
    (tmp_path / "function").write_bytes(pickle.dumps((["/p"], b"")))

    with pytest.raises(PermissionError, match=f"expected {digest}"):
        load_call(tmp_path, digest)


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    store_result(tmp_path, 0, "value")
    (tmp_path / "result.0").chmod(0o620)

    with pytest.raises(PermissionError, match="can be written by others"):
        load_result(tmp_path, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    store_result(tmp_path, 0, "value")
    os.chown(tmp_path / "result.0", 12345, -1)

    with pytest.raises(PermissionError, match="belongs to user 12345"):
        load_result(tmp_path, 0)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    store_result(tmp_path, 1, "value")
    (tmp_path / "result.0").symlink_to(tmp_path / "result.1")

    with pytest.raises(OSError, match="symbolic links"):
        load_result(tmp_path, 0)


class Unpicklable(Exception):  # noqa: N818
    def __reduce__(self):
        message = "no"
        raise TypeError(message)


def failure_of(error: Exception, rank: int) -> Failure:
    try:
        raise error  # noqa: TRY301 - so that it has a traceback
    except Exception as caught:  # noqa: BLE001
        return Failure.of(caught, rank, f"host{rank}")


def test_exceptions_come_back_first_cause_first(tmp_path: Path) -> None:
    store_failure(tmp_path, failure_of(KeyError("cause"), 2))
    store_failure(tmp_path, failure_of(Unpicklable("later"), 0))

    first, second = load_failures(tmp_path)

    assert (first.rank, first.host, first.summary) == (2, "host2", "KeyError: 'cause'")
    assert isinstance(first.exception(), KeyError)
    assert (second.rank, second.exception()) == (0, None)
    assert "Unpicklable: later" in second.traceback


def test_without_cloudpickle_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)

    with pytest.raises(ImportError, match="pip install cloudpickle"):
        Call.of(print, (), {}, [])
