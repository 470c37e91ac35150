"""Copies of nested states in memory that is kept from one commit to the next."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch

_Pairs = list[tuple[torch.Tensor, torch.Tensor]]


class Snapshot:
    """The last copy of a state_dict; the second and all later ones allocate nothing."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._kept: Any = None

    @torch.no_grad()
    def take(self, state: Any) -> None:
        """Copy a state of dicts, lists, tuples, tensors and other objects."""
        pairs: _Pairs = []
        self._kept = _copied(self._kept, state, pairs)
        if pairs:
            torch._foreach_copy_([mine for mine, _ in pairs], [given for _, given in pairs])

    @property
    def state(self) -> Any:
        """The copy itself: who may change it, or keep tensors of it, copies it again."""
        return self._kept


def _copied(mine: Any, given: Any, pairs: _Pairs) -> Any:
    """Return a copy in the memory of `mine` where that fits; tensors are copied by the caller."""
    if isinstance(given, torch.Tensor):
        given = given.detach()
        if not _fits(mine, given):
            return given.clone()
        pairs.append((mine, given))
        return mine
    if isinstance(given, Mapping):
        kept = mine if isinstance(mine, Mapping) else {}
        return {key: _copied(kept.get(key), value, pairs) for key, value in given.items()}
    if type(given) in (list, tuple):
        old = list(mine) if type(mine) is type(given) and len(mine) == len(given) else [None] * len(given)
        return type(given)(_copied(*both, pairs) for both in zip(old, given, strict=True))
    return copy.deepcopy(given)


def _fits(mine: Any, given: torch.Tensor) -> bool:
    return (
        isinstance(mine, torch.Tensor)
        and mine.layout is torch.strided
        and given.layout is torch.strided
        and mine.shape == given.shape
        and mine.dtype == given.dtype
        and mine.device == given.device
    )
