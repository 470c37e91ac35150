"""Faults in the test's own layer, to show that they are noticed, and how small a program they leave.

They stand for what a broken core would do: a result that is wrong, an order that ranks do not share, a
submission that gets lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from program import WAITS, Action, Do, Kind, Program


@dataclass(frozen=True)
class Fault:
    """What one rank does wrong."""

    what: str
    """corrupt: its results are changed; swap: two without names change places; drop: it is not submitted."""
    kind: Kind
    rank: int = 1


def actions_with(fault: Fault | None, program: Program, rank: int) -> tuple[Action, ...]:
    """What a rank does."""
    actions = program.actions[rank]
    if fault is None or fault.rank != rank:
        return actions
    if fault.what == "drop":
        return tuple(a for a in actions if not _is_of_kind(program, a, fault.kind))
    if fault.what == "swap":
        return _swapped(program, actions, fault.kind)
    return actions


def corrupt(fault: Fault | None, kind: Kind, rank: int, result: torch.Tensor) -> None:
    """Change a result that the fault is about."""
    is_meant = fault is not None and (fault.what, fault.kind, fault.rank) == ("corrupt", kind, rank)
    if is_meant and result.numel() > 0:
        result.view(-1).view(torch.uint8)[0] ^= 1


def _is_of_kind(program: Program, action: Action, kind: Kind) -> bool:
    return action.operation >= 0 and program.operations[action.operation].kind is kind


def _swapped(program: Program, actions: tuple[Action, ...], kind: Kind) -> tuple[Action, ...]:
    """Exchanges the first two submissions without a name in one set that no wait lies between."""
    changed = list(actions)
    earlier: dict[int, int] = {}
    for place, action in enumerate(actions):
        if action.do in WAITS or action.form.blocks():
            earlier = {}
        if action.do is not Do.SUBMIT or action.form.blocks():
            continue
        operation = program.operations[action.operation]
        if operation.kind is not kind or operation.name is not None:
            continue
        first = earlier.setdefault(operation.process_set, place)
        if first != place:
            changed[first], changed[place] = changed[place], changed[first]
            return tuple(changed)
    return actions
