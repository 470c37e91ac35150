"""The way to the operations of compiled graphs, for calls that torch.compile traces."""

from __future__ import annotations

from typing import Any

from torch.compiler import is_compiling

__all__ = ["compiled", "is_compiling"]


def compiled() -> Any:
    """Return the module of the operations. Loaded at first use: eager programs do without it."""
    from . import _compiled  # noqa: PLC0415

    return _compiled
