"""Jobs whose processes Spark starts: `run` calls a function on every rank, as barrier tasks.

Names are resolved at their first use: the process of a rank does not need the driver's side, and nothing
here imports PySpark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._horovod_runner import HorovodRunner
    from ._worker import log_to_driver
    from .runner import run, run_elastic

__all__ = ["HorovodRunner", "log_to_driver", "run", "run_elastic"]

_HOMES = {
    "HorovodRunner": "_horovod_runner",
    "log_to_driver": "_worker",
    "run": "runner",
    "run_elastic": "runner",
}


def __getattr__(name: str) -> Any:
    """Import where a public name lives."""
    if name not in _HOMES:
        message = f"module 'horovod.spark' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
