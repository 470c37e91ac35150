"""Distributed data-parallel training: import the front end of a framework, e.g. horovod.torch."""

from __future__ import annotations

from typing import Any

from horovod._core import _native

__version__ = _native.version()

__all__ = ["__version__", "run"]


def __getattr__(name: str) -> Any:
    """Resolve `run` at first use: the launcher is not needed by the processes it starts."""
    if name == "run":
        from horovod.runner import run  # noqa: PLC0415

        return run
    message = f"module 'horovod' has no attribute {name!r}"
    raise AttributeError(message)
