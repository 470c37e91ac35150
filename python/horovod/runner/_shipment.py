"""What travels between horovod.run and its workers: a function there, results back.

Both are files in a folder that only this user can enter. A reader insists on that: pickles are
programs. The function is also known by its digest, which reaches the workers on their command line.
Hosts need not share the folder: horovodrun sends the function along and brings the results back.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FUNCTION = "function"

FOLDER_VARIABLE = "HOROVOD_RUN_FOLDER"
"""Where the files are, on each host; the native launcher knows the names of this module's files."""
FROM_ENVIRONMENT = "-"
"""Stands for the folder on a worker's command line if the variable names it."""


def import_cloudpickle() -> Any:
    """The module, which only programs that send functions need."""
    try:
        import cloudpickle  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError as error:
        message = "horovod.run needs cloudpickle to send the function to the workers: pip install cloudpickle"
        raise ImportError(message) from error
    return cloudpickle


def _write(path: Path, data: bytes) -> None:
    """Store privately and at once: a reader finds all of it or nothing."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # readable for this user alone
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    Path(name).rename(path)


def _read(path: Path) -> bytes:
    """Read a file that nobody else can have written."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.geteuid():
            message = f"{path} belongs to user {facts.st_uid}, expected {os.geteuid()}"
            raise PermissionError(message)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            message = f"{path} can be written by others (mode {stat.S_IMODE(facts.st_mode):o}, expected 600)"
            raise PermissionError(message)
        return file.read()


@dataclass(frozen=True)
class Failure:
    """An exception of a rank."""

    rank: int
    host: str
    when: float
    summary: str
    traceback: str
    pickled: bytes | None

    def exception(self) -> BaseException | None:
        """The exception itself, where it can be brought back."""
        if self.pickled is None:
            return None
        try:
            error = pickle.loads(self.pickled)  # noqa: S301 - from a private file
        except Exception:  # noqa: BLE001 - some exceptions can be pickled but not restored
            return None
        return error if isinstance(error, BaseException) else None

    @staticmethod
    def of(error: BaseException, rank: int, host: str) -> Failure:
        """Describe an exception that was just caught."""
        try:
            pickled: bytes | None = import_cloudpickle().dumps(error)
        except Exception:  # noqa: BLE001 - then the text has to do
            pickled = None
        summary = "".join(traceback.format_exception_only(type(error), error)).strip()
        frames = error.__traceback__
        if frames is not None and frames.tb_next is not None:
            frames = frames.tb_next  # without the frame that called the function
        text = "".join(traceback.format_exception(type(error), error, frames))
        return Failure(rank, host, time.time(), summary, text, pickled)


@dataclass(frozen=True)
class Call:
    """A function with its arguments, and where its modules are found."""

    path: list[str]
    pickled: bytes

    @staticmethod
    def of(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], path: list[str]) -> Call:
        """Prepare a call for another process."""
        return Call(path, import_cloudpickle().dumps((func, tuple(args), dict(kwargs))))

    def unpickle(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """The function and its arguments; sys.path must hold `path` by now."""
        call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
        call = pickle.loads(self.pickled)  # noqa: S301 - authenticated when it was read
        return call


def store_call(folder: Path, call: Call) -> str:
    """Store the function, and return its digest."""
    data = pickle.dumps((call.path, call.pickled))
    _write(folder / _FUNCTION, data)
    return hashlib.sha256(data).hexdigest()


def load_call(folder: Path, digest: str) -> Call:
    """Read the function; FileNotFoundError if the folder is not visible here."""
    data = _read(folder / _FUNCTION)
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        message = f"{folder / _FUNCTION} is not what was sent: its digest is {found}, expected {digest}"
        raise PermissionError(message)
    path, pickled = pickle.loads(data)  # noqa: S301 - checked above
    return Call(path, pickled)


def store_result(folder: Path, rank: int, value: Any) -> None:
    """Store what the function returned on this rank."""
    _write(folder / f"result.{rank}", import_cloudpickle().dumps(value))


def store_failure(folder: Path, failure: Failure) -> None:
    """Store what the function raised on this rank."""
    _write(folder / f"failure.{failure.rank}", pickle.dumps(failure))


def load_result(folder: Path, rank: int) -> Any:
    """What the function returned on this rank; FileNotFoundError if it did not return."""
    return pickle.loads(_read(folder / f"result.{rank}"))  # noqa: S301 - from a private file


def load_failures(folder: Path) -> list[Failure]:
    """The exceptions of all ranks, also of those that joined later; first cause first."""
    files = folder.glob("failure.*")
    failures: list[Failure] = [pickle.loads(_read(file)) for file in files]  # noqa: S301 - private
    return sorted(failures, key=lambda failure: failure.when)
