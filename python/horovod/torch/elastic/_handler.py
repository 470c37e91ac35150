"""The base class of those who know how to keep a value of TorchState."""

from __future__ import annotations

from typing import Any


class StateHandler:
    """Knows how to keep one value; what is committed, and from whom a sync comes, is set by TorchState."""

    root_rank = 0
    """The rank whose value the next sync() shares."""

    def __init__(self, value: Any) -> None:
        """Handle this value."""
        self.value = value

    def save(self) -> None:
        """Copy the value."""
        raise NotImplementedError

    def restore(self) -> None:
        """Bring the value back to its copy."""
        raise NotImplementedError

    def sync(self) -> None:
        """Give every rank the value of the root."""
        raise NotImplementedError

    def reset(self) -> None:
        """Adapt the value to a new world."""

    def set_value(self, value: Any) -> None:
        """Handle another value from now on."""
        self.value = value
        self.save()
