"""Starting jobs from Python."""

from __future__ import annotations

from typing import Any, NoReturn


def run(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: functions cannot be launched yet, commands can (`horovodrun`)."""
    del args, kwargs
    message = "horovod.run is not available in this version; start a script with: horovodrun -np N"
    raise NotImplementedError(message)
