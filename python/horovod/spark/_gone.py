"""What the original had to start ranks and is not here: names that programs import keep to exist.

Who uses one is told so. Services that run what they are sent are gone on purpose (docs/spark.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def _refuse(name: str) -> NoReturn:
    message = (
        f"{name} is not here: Spark's barrier tasks are the ranks, so that no service and no rsh takes part; "
        "use horovod.spark.run or run_elastic"
    )
    raise NotImplementedError(message)


class GoneService:
    """A class that is there to be imported."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Refuse."""
        del args, kwargs
        _refuse(f"{type(self).__module__}.{type(self).__name__}")


def gone_function(name: str) -> Callable[..., NoReturn]:
    """Return a function that is there to be imported."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        _refuse(name)

    return refuse
