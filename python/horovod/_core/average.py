"""The old parameter `average` beside `op`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Protocol

from .codes import AVERAGE, SUM


class ReduceOps(Protocol):
    """Whatever knows the two constants that `average` stands for."""

    Average: int
    Sum: int


def resolve_op(op: int | None, average: bool | None) -> int:
    """Return the operation that a call asks for; Average unless it says something."""
    if average is None:
        return AVERAGE if op is None else op
    if op is not None:
        message = f"op and average cannot both be given, got op={op} and average={average}"
        raise ValueError(message)
    warnings.warn(
        "Parameter `average` has been replaced with `op` and will be removed; use op=Average or op=Sum",
        DeprecationWarning,
        stacklevel=3,
    )
    return AVERAGE if average else SUM


def get_average_backwards_compatibility_fun(
    reduce_ops: ReduceOps,
) -> Callable[[int | None, bool | None], int]:
    """Return resolve_op, for the constants of a front end (which are the same everywhere)."""
    del reduce_ops
    return resolve_op
