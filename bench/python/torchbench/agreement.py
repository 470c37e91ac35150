"""All ways must have the same gradients before it matters how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from .ways import Way

_TOLERANCE: Final = 1e-4


def check_agreement(ways: Sequence[Way]) -> None:
    """Compare the averaged gradients of ways that communicate; twice, as first steps differ."""
    first = ways[0]
    for _ in range(2):
        for way in ways:
            way.gradients()
        for other in ways[1:]:
            for index, (ours, theirs) in enumerate(
                zip(first.model.parameters(), other.model.parameters(), strict=True)
            ):
                _check_equal(f"{first.name} and {other.name}, parameter {index}", ours, theirs)
    for way in ways:
        way.rest()


def _check_equal(what: str, ours: torch.Tensor, theirs: torch.Tensor) -> None:
    if ours.grad is None or theirs.grad is None:
        message = f"{what}: a gradient is missing"
        raise AssertionError(message)
    if not torch.allclose(ours.grad, theirs.grad, rtol=_TOLERANCE, atol=_TOLERANCE):
        difference = (ours.grad - theirs.grad).abs().max().item()
        message = f"{what}: gradients differ by {difference}"
        raise AssertionError(message)
