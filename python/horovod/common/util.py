"""Small helpers that programs and test suites import from here."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import logging
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from horovod._core.average import get_average_backwards_compatibility_fun
from horovod._core.basics import basics

__all__ = [
    "EXTENSIONS",
    "ccl_built",
    "check_extension",
    "check_installed_version",
    "ddl_built",
    "env",
    "extension_available",
    "get_average_backwards_compatibility_fun",
    "get_ext_suffix",
    "gloo_built",
    "gpu_available",
    "is_iterable",
    "is_version_greater_equal_than",
    "mpi_built",
    "nccl_built",
    "num_rank_is_power_2",
    "split_list",
]

EXTENSIONS = ["tensorflow", "torch", "mxnet"]

_T = TypeVar("_T")
_CHILD_TIMEOUT_SECONDS = 120
_MISSING = object()
_FRONT_ENDS = ("horovod.mxnet", "horovod.tensorflow", "horovod.torch")
_logger = logging.getLogger("horovod")


def get_ext_suffix() -> str:
    """Return the ending of extension modules, e.g. `.cpython-311-x86_64-linux-gnu.so`."""
    return sysconfig.get_config_var("EXT_SUFFIX") or sysconfig.get_config_var("SO") or ".so"


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """Raise ImportError unless the extension module lies beside `pkg_path`.

    The front ends of this package have theirs in the core's library, which has been loaded.
    """
    if ext_name in _FRONT_ENDS:
        return
    path = Path(pkg_path).parent.joinpath(*args)
    path = path.with_name(path.name + get_ext_suffix())
    if not path.exists():
        message = (
            f"Extension {ext_name} has not been built: {path} not found\n"
            f"If this is not expected, reinstall Horovod with {ext_env_var}=1 "
            "to debug the build error."
        )
        raise ImportError(message)


def _cache(function: Callable[..., _T]) -> Callable[..., _T]:
    """Remember results by arguments, keyword arguments included."""
    known: dict[object, Any] = {}

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> _T:
        key = (args, frozenset(kwargs.items()))
        result = known.get(key, _MISSING)
        if result is _MISSING:
            result = known[key] = function(*args, **kwargs)
        return result  # type: ignore[no-any-return]

    return wrapper


def _answer_of_child(program: str, *, verbose: bool) -> bool:
    """Run a program that must not disturb this process; True if it ends well."""
    try:
        result = subprocess.run(  # noqa: S603 - our own text
            [sys.executable, "-c", program],
            check=False,
            capture_output=not verbose,
            timeout=_CHILD_TIMEOUT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        _logger.debug("cannot ask a child process", exc_info=True)
        return False
    return result.returncode == 0


@_cache
def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Return whether the front end of a framework can be imported, tried in another process."""
    if not ext_base_name.isidentifier() or importlib.util.find_spec("horovod") is None:
        return False
    return _answer_of_child(f"import horovod.{ext_base_name}", verbose=verbose)


@_cache
def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Return whether the framework sees a GPU, tried in another process.

    Arguments:
        ext_base_name: "torch", "tensorflow" or "mxnet".
        verbose: show what the other process prints.

    """
    if not ext_base_name.isidentifier():
        return False
    program = f"import sys, horovod.{ext_base_name} as hvd; sys.exit(0 if hvd._check_has_gpu() else 1)"
    return _answer_of_child(program, verbose=verbose)


def mpi_built(verbose: bool = False) -> bool:
    """See HorovodBasics.mpi_built. No front end is asked: all have the same core."""
    del verbose
    return basics.mpi_built()


def gloo_built(verbose: bool = False) -> bool:
    """See HorovodBasics.gloo_built."""
    del verbose
    return basics.gloo_built()


def nccl_built(verbose: bool = False) -> int:
    """See HorovodBasics.nccl_built."""
    del verbose
    return basics.nccl_built()


def ddl_built(verbose: bool = False) -> bool:
    """See HorovodBasics.ddl_built."""
    del verbose
    return basics.ddl_built()


def ccl_built(verbose: bool = False) -> bool:
    """See HorovodBasics.ccl_built."""
    del verbose
    return basics.ccl_built()


@contextlib.contextmanager
def env(**kwargs: str | None) -> Iterator[None]:
    """Set environment variables for a block of code; those given as None are left alone."""
    changed = {key: value for key, value in kwargs.items() if value is not None}
    before = {key: os.environ.get(key) for key in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def num_rank_is_power_2(num_rank: int) -> bool:
    """Return whether the number is a power of two."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l: Sequence[_T], n: int) -> list[Sequence[_T]]:  # noqa: E741 - public name
    """Cut into n runs of neighbours; the first ones are longer by one where it is not even."""
    length, longer = divmod(len(l), n)
    starts = [i * length + min(i, longer) for i in range(n + 1)]
    return [l[start:end] for start, end in itertools.pairwise(starts)]


def is_iterable(x: object) -> bool:
    """Return whether the object can be iterated over."""
    return isinstance(x, Iterable) or hasattr(x, "__getitem__")


@_cache
def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """Compare versions; the target must be `major.minor.patch`."""
    if not isinstance(ver, str) or not isinstance(target, str):
        message = f"versions must be strings, got {ver!r} and {target!r}"
        raise ValueError(message)  # noqa: TRY004 - type of the public API
    if not re.fullmatch(r"\d+\.\d+\.\d+", target):
        message = f"target version must be major.minor.patch, got {target!r}"
        raise ValueError(message)
    found = re.match(r"\d+(\.\d+)*", ver)
    if found is None:
        message = f"version must begin with a number, got {ver!r}"
        raise ValueError(message)
    have = [int(part) for part in found.group().split(".")]
    want = [int(part) for part in target.split(".")]
    have += [0] * (len(want) - len(have))
    rest = ver[found.end() :]
    is_prerelease = re.match(r"[.\-_]?(a|b|c|rc|alpha|beta|pre|dev)", rest) is not None
    return have > want or (have == want and not is_prerelease)


def check_installed_version(name: str, version: str, exception: BaseException | None = None) -> None:
    """Do nothing but pass on the exception: nothing here is built against a framework version."""
    del name, version
    if exception is not None:
        raise exception
