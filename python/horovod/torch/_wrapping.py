"""What DistributedOptimizer and its Adasum form share: how an optimizer is wrapped.

The result is an instance of a new subclass of the user's optimizer class, with the same name. It
takes over everything the given optimizer holds, its state too, and shares it.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from horovod._core.gradients import checked_names, default_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

O = TypeVar("O", bound=Optimizer)  # noqa: E741 - an optimizer

# A learning rate scheduler replaces `step` on the instance; it must not hide the method of the
# subclass.
_NOT_TAKEN_OVER = {"step"}


def wrap(template: type[O], optimizer: Optimizer) -> O:
    """Make an instance of a subclass of the optimizer's class that has the methods of `template`."""
    base = wrapped_class(optimizer)
    methods = {**template.__dict__, "_wrapped_class": base}
    made: type[O] = type(base.__name__, (base,), methods)
    wrapped = made.__new__(made)
    wrapped.__dict__.update(
        {key: value for key, value in optimizer.__dict__.items() if key not in _NOT_TAKEN_OVER}
    )
    wrapped._optimizer_ref = weakref.ref(optimizer)  # type: ignore[attr-defined]  # noqa: SLF001 - our own
    return wrapped


def wrapped_class(optimizer: Optimizer) -> type[Optimizer]:
    """Return the class of the user's optimizer, also of one that is wrapped already."""
    base: type[Optimizer] = getattr(type(optimizer), "_wrapped_class", type(optimizer))
    return base


def tell_scheduler(optimizer: Optimizer | None) -> None:
    """Let a scheduler that was made for the optimizer before it was wrapped know of the step."""
    if optimizer is None:
        return
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        optimizer._opt_called = True  # type: ignore[attr-defined]  # noqa: SLF001 - torch's protocol
    elif hasattr(optimizer.step, "_with_counter"):
        optimizer._step_count += 1  # type: ignore[attr-defined]  # noqa: SLF001 - that before torch 2.4


def rebuild_plain(base: type[Optimizer], state: dict[str, Any]) -> Optimizer:
    """Unpickle: hooks and communication stay behind, an optimizer of the user's class remains."""
    plain = base.__new__(base)
    plain.__setstate__(state)
    return plain


def is_asked_by_scaler(depth: int) -> bool:
    """Whether the code `depth` calls up is torch's GradScaler."""
    module: str = sys._getframe(depth + 1).f_globals.get("__name__", "")  # noqa: SLF001
    return module.endswith("amp.grad_scaler")


def all_parameters(param_groups: Iterable[dict[str, Any]]) -> Iterator[Tensor]:
    """Yield the parameters of all groups."""
    for group in param_groups:
        yield from group["params"]


def parameter_names(
    param_groups: list[dict[str, Any]], named_parameters: Iterable[tuple[str, Tensor]] | None
) -> dict[Tensor, str]:
    """Name every parameter of an optimizer, or say what is wrong with the names given."""
    if named_parameters is None:
        return {
            parameter: default_name(group_index, index)
            for group_index, group in enumerate(param_groups)
            for index, parameter in enumerate(group["params"])
        }
    pairs = checked_names(named_parameters)
    names = {parameter: name for name, parameter in sorted(pairs, key=lambda pair: pair[0])}
    unnamed = sum(parameter not in names for parameter in all_parameters(param_groups))
    if unnamed:
        message = (
            f"named_parameters was specified, but {unnamed} of the optimizer's parameters were not"
            " named; names must be given for all of them"
        )
        raise ValueError(message)
    return names


def is_parameter(value: object) -> bool:
    """Whether it can be a member of `groups`."""
    return isinstance(value, torch.Tensor)
