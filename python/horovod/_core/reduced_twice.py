"""Noticing that gradients of a DistributedGradientTape are handed to a DistributedOptimizer.

Both reduce, so that a sum is a sum of sums. Nobody can tell whether that is meant, and what is done here
decides nothing: a program is told once. What was computed from the gradients in between is not recognized.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

_MARK = "_hvd_reduced_by_tape"


def mark_reduced(gradient: Any) -> None:
    """Remember that a tape has reduced this gradient; it lasts as long as the tensor."""
    with contextlib.suppress(AttributeError):
        setattr(gradient, _MARK, True)


def warn_if_reduced(gradients: Iterable[Any]) -> None:
    """Warn, once per process, if an optimizer that reduces gets gradients that are reduced already."""
    if any(getattr(gradient, _MARK, False) for gradient in gradients):
        _warn()


@cache
def _warn() -> None:
    warnings.warn(
        "gradients of hvd.DistributedGradientTape were given to an hvd.DistributedOptimizer: both "
        "reduce them, which costs time with op=Average and makes them too large by the number of processes "
        "with op=Sum; use hvd.DistributedGradientTape with a plain optimizer, or tf.GradientTape with "
        "hvd.DistributedOptimizer",
        stacklevel=2,
    )
