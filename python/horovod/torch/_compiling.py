"""The way to the operations of compiled graphs, for calls that torch.compile traces.

Graphs hold operations from torch 2.4 on, which can describe them. Before, torch.compile finds the eager
operations, and interrupts its graph there.
"""

from __future__ import annotations

from typing import Any

import torch

if hasattr(torch.library, "custom_op"):
    from torch.compiler import is_compiling
else:

    def is_compiling() -> bool:
        """Return False: nothing here is part of a graph in this release of torch."""
        return False


__all__ = ["compiled", "is_compiling"]


def compiled() -> Any:
    """Return the module of the operations. Loaded at first use: eager programs do without it."""
    from . import _compiled  # noqa: PLC0415

    return _compiled
