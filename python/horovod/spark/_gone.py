"""What the original had to start ranks and is not here: names that programs import keep to exist.

Who uses one is told so. Services that run what they are sent are gone on purpose (docs/spark.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NoReturn

from horovod.runner import _gone

_REASON = (
    "Spark's barrier tasks are the ranks, so that no service and no rsh takes part; "
    "use horovod.spark.run or run_elastic"
)


class GoneService(_gone.GoneService):
    """A class that is there to be imported."""

    reason: ClassVar[str] = _REASON


def gone_function(name: str) -> Callable[..., NoReturn]:
    """Return a function that is there to be imported."""
    return _gone.gone_function(name, _REASON)
