"""Jobs whose processes Spark starts: `run` calls a function on every rank, as barrier tasks.

Nothing here imports PySpark before it is used.
"""

from __future__ import annotations

from ._horovod_runner import HorovodRunner
from ._worker import log_to_driver
from .runner import run, run_elastic

__all__ = ["HorovodRunner", "log_to_driver", "run", "run_elastic"]
