"""Starting jobs from Python: `run` calls a function on every rank."""

from __future__ import annotations

from ._run import _HorovodArgs, run

__all__ = ["_HorovodArgs", "run"]
