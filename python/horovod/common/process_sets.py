"""Process sets, and the internal names of this module that other packages have come to use."""

from __future__ import annotations

from collections.abc import Sequence

from horovod._core.basics import HorovodBasics
from horovod._core.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
    resolve_static_sets,
)

__all__ = ["ProcessSet", "add_process_set", "global_process_set", "remove_process_set"]


def _temp_process_set_object(process_set_id: int) -> ProcessSet:
    return ProcessSet.with_id(process_set_id)


def _setup(basics: HorovodBasics) -> None:
    """Accept the call that each front end of the original makes; all of them share one core."""
    del basics


def _init_process_sets(process_sets: Sequence[ProcessSet]) -> None:
    resolve_static_sets(process_sets)
