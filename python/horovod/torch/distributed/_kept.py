"""Works that torch's C++ code waits for stay alive here, in releases where that code does not see to it.

There it holds the C++ half of a work alone: once Python's half is gone, wait() is the base class's, which
nobody ever wakes. DDP on torch 2.6 hung like that; 2.13 holds both halves, releases between were not tried.
"""

from __future__ import annotations

from typing import Final

from torch.distributed import Work

from horovod.torch._release import RELEASE

_FIRST_THAT_HOLDS_BOTH: Final = (2, 13)
_MOST: Final = 256
"""Works that nobody waits for, by get_future() alone or not at all, are forgotten after so many others."""

IS_NEEDED: Final = RELEASE < _FIRST_THAT_HOLDS_BOTH

_kept: dict[int, Work] = {}


def keep(work: Work) -> None:
    """Hold a work until somebody has waited for it."""
    if not IS_NEEDED:
        return
    _kept[id(work)] = work
    while len(_kept) > _MOST:
        _kept.pop(next(iter(_kept)), None)


def let_go(work: Work) -> None:
    """Somebody has waited."""
    if IS_NEEDED:
        _kept.pop(id(work), None)
