"""Distributed data-parallel training: import the front end of a framework, e.g. horovod.torch."""

from __future__ import annotations

import importlib
from typing import Any

from horovod._core import _native

__version__ = _native.version()

__all__ = ["__version__", "run"]


def __getattr__(name: str) -> Any:
    """Resolve `run` and `runner` at first use: the processes of a job do not need the launcher."""
    if name in {"run", "runner"}:
        runner = importlib.import_module("horovod.runner")
        return runner if name == "runner" else runner.run
    message = f"module 'horovod' has no attribute {name!r}"
    raise AttributeError(message)
