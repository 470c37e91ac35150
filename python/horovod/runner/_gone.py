"""What the original's launcher had to reach other hosts: gone, but for names that programs import.

Who uses one is told so. Services that run or unpickle what they are sent are gone on purpose
(docs/python-launch.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

_REASON = (
    "horovodrun reaches other hosts by its own agents, so that no service runs or unpickles what it is sent; "
    "use horovod.run, or horovodrun"
)


class GoneService:
    """A class that is there to be imported."""

    reason: ClassVar[str] = _REASON

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Refuse."""
        del args, kwargs
        gone_function(f"{type(self).__module__}.{type(self).__name__}", self.reason)()


def gone_function(name: str, reason: str = _REASON) -> Callable[..., NoReturn]:
    """Return a function that is there to be imported."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        message = f"{name} is not here: {reason}"
        raise NotImplementedError(message)

    return refuse
