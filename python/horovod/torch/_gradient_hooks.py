"""Hooks on parameters that end with their owner.

A parameter outlives optimizers: its hooks know their owner weakly and are removed with it, so that
the next optimizer of the same parameters is alone with them.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor
    from torch.utils.hooks import RemovableHandle

    from ._gradient_submission import ParameterGradient


class PassListener(Protocol):
    """Who is told when a backward pass has completed a gradient."""

    def on_pass(self, gradient: ParameterGradient, /) -> None:
        """Take note."""


class GradientHooks:
    """The hooks of one owner."""

    def __init__(self, owner: PassListener) -> None:
        """Tell `owner`, and end with it."""
        self._owner = weakref.ref(owner)
        self._removable: list[RemovableHandle] = []
        weakref.finalize(owner, _remove_all, self._removable).atexit = False

    def add(self, gradient: ParameterGradient) -> None:
        """Report each pass that has reached the gradient's parameter, which must require one."""
        owner = self._owner

        def on_gradient(_parameter: Tensor) -> None:
            alive = owner()
            if alive is not None:
                alive.on_pass(gradient)

        register = gradient.parameter.register_post_accumulate_grad_hook
        handle: RemovableHandle = register(on_gradient)  # type: ignore[no-untyped-call]
        self._removable.append(handle)

    def remove(self) -> None:
        """Report nothing any more."""
        _remove_all(self._removable)


def _remove_all(removable: list[RemovableHandle]) -> None:
    for handle in removable:
        handle.remove()
    removable.clear()
