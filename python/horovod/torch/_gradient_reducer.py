"""Reduces the gradients of an optimizer: hooks submit them during backward, synchronize() waits.

One reducer belongs to one DistributedOptimizer, and ends with it.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from typing import TYPE_CHECKING

from horovod._core import _native
from horovod._core.gradients import GradientPlan

from ._devices import current_stream
from ._gradient_hooks import GradientHooks
from ._gradient_submission import (
    ParameterGradient,
    ReduceOptions,
    forget_sent,
    put_in_place,
    submit_anew,
    submit_group,
    submit_prepared,
)
from ._handles import at_shutdown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor


_alive: weakref.WeakSet[GradientReducer] = weakref.WeakSet()


def reset_all() -> None:
    """Forget what is under way for all optimizers: the core that had it is gone."""
    for reducer in list(_alive):
        reducer.reset()


at_shutdown(reset_all)


class GradientReducer:
    """Knows the state of every gradient between two steps."""

    def __init__(self, options: ReduceOptions, backward_passes: int) -> None:
        """Start without parameters: add() brings them."""
        self.options = options
        self.plan: GradientPlan[ParameterGradient] = GradientPlan(backward_passes)
        self.is_reduced = False
        """The gradients are those of all ranks, and no pass has changed them since."""
        self.required: set[Tensor] = set()
        """Parameters that have part in every step, also where no pass has reached them."""
        self._unhooked: list[ParameterGradient] = []
        self._handles: list[int] = []
        self._finishes: list[Callable[[], None]] = []
        self._lock = threading.RLock()
        self._hooks = GradientHooks(self)
        _alive.add(self)

    # ---- which parameters

    def add(self, parameter: Tensor, name: str) -> None:
        """Follow a parameter from now on, or from the step in which it starts to need a gradient."""
        gradient = ParameterGradient(name, self.plan.backward_passes, parameter=parameter)
        self._unhooked.append(gradient)
        self.adopt()

    def adopt(self) -> None:
        """Hook the parameters that need a gradient by now."""
        if not self._unhooked:
            return
        waiting, self._unhooked = self._unhooked, []
        for gradient in waiting:
            if not gradient.parameter.requires_grad:
                self._unhooked.append(gradient)
                continue
            self.plan.add(gradient)
            self.required.add(gradient.parameter)
            self._hooks.add(gradient)

    def set_options(self, options: ReduceOptions) -> None:
        """Combine gradients in another way from the next submission on."""
        self.options = options
        for gradient in self.plan.gradients:
            gradient.forget_prepared()

    def close(self) -> None:
        """Let the parameters go."""
        self.reset()
        self._hooks.remove()
        self.plan.gradients.clear()
        self.required.clear()
        self._unhooked.clear()

    # ---- one step

    @property
    def is_busy(self) -> bool:
        """Whether operations are under way."""
        return bool(self._handles or self._finishes)

    @property
    def is_complete(self) -> bool:
        """Whether every gradient has been submitted."""
        return all(gradient.submitted for gradient in self.plan.gradients)

    def on_pass(self, gradient: ParameterGradient) -> None:
        """Count a backward pass that has reached the gradient; submit what became complete."""
        self.is_reduced = False
        if gradient.group is None:
            if self.plan.count_pass(gradient):
                self._submit_one(gradient)
            return
        # Backward runs one thread per device, and a group may span several.
        with self._lock:
            ready = self.plan.count_pass(gradient)
            if ready:
                self._submit_group(ready)

    def synchronize(self) -> None:
        """Submit what is missing, wait for everything, and begin the next step."""
        self.adopt()
        passes = self.plan.backward_passes
        for gradients in self.plan.missing():
            if not any(g.parameter in self.required or g.passes_left != passes for g in gradients):
                continue
            if gradients[0].group is None:
                self._submit_one(gradients[0])
            else:
                self._submit_group(gradients)
        try:
            if self._handles:
                _native.wait_many(self._handles, None)
                self._order()
            for finish in self._finishes:
                finish()
            for gradient in self.plan.gradients:
                put_in_place(gradient)
        finally:
            self.reset()
        self.is_reduced = True

    def _order(self) -> None:
        """Let the current streams wait for gradients on devices: backward may have run on others."""
        for gradient in self.plan.gradients:
            if gradient.handle is not None and gradient.parameter.is_cuda:
                _native.order(gradient.handle, current_stream(gradient.parameter.get_device()))

    def reset(self) -> None:
        """Begin a step anew; operations under way go on, but their results are not used."""
        for handle in self._handles:
            with contextlib.suppress(ValueError):  # a shutdown has released all
                _native.release(handle)
        self._handles.clear()
        self._finishes.clear()
        for gradient in self.plan.gradients:
            gradient.handle = None
            forget_sent(gradient)
        self.plan.reset()
        self.is_reduced = False

    def _submit_one(self, gradient: ParameterGradient) -> None:
        if not submit_prepared(gradient):
            self._finishes += submit_anew(gradient, self.options)
        if gradient.handle is not None:
            self._handles.append(gradient.handle)

    def _submit_group(self, gradients: Sequence[ParameterGradient]) -> None:
        handles, finishes = submit_group(gradients, self.options)
        self._handles += handles
        self._finishes += finishes
