"""The Adasum form of DistributedOptimizer: it combines what the ranks' steps changed.

Each rank makes its own step from its own gradients; the changes of the parameters are then combined
by Adasum, which adds what is orthogonal and averages what is parallel.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from horovod._core.codes import ADASUM
from horovod._core.gradients import GradientPlan, default_name, find_duplicates
from horovod._core.process_sets import ProcessSet, global_process_set

from ._gradient_hooks import GradientHooks
from ._gradient_reducer import GradientReducer
from ._gradient_submission import ParameterGradient, ReduceOptions
from ._wrapping import (
    all_parameters,
    is_asked_by_scaler,
    parameter_names,
    rebuild_plain,
    tell_scheduler,
    wrap,
)
from .mpi_ops import Max, allreduce


class _PassCounter:
    """Counts the backward passes of each parameter, so that too many of them are noticed."""

    def __init__(self, backward_passes: int) -> None:
        self.plan: GradientPlan[ParameterGradient] = GradientPlan(backward_passes)
        self._hooks = GradientHooks(self)

    def add(self, gradient: ParameterGradient) -> None:
        self.plan.add(gradient)
        self._hooks.add(gradient)

    def on_pass(self, gradient: ParameterGradient, /) -> None:
        self.plan.count_pass(gradient)

    def close(self) -> None:
        self._hooks.remove()


class _DistributedAdasumOptimizer(Optimizer):
    """The methods of the subclass made of the user's class; see _wrapping.wrap."""

    _wrapped_class: ClassVar[type[Optimizer]]
    _optimizer_ref: weakref.ref[Optimizer]
    _parameter_names: dict[Tensor, str]
    # What the ranks exchange: where a parameter started from, with the change as its "gradient".
    _reducer: GradientReducer
    _starting_models: dict[Tensor, Tensor]
    _counter: _PassCounter

    def _set_up(self, reducer: GradientReducer, names: dict[Tensor, str]) -> None:
        self._reducer = reducer
        self._parameter_names = names
        self._counter = _PassCounter(reducer.plan.backward_passes)
        self._starting_models = {}
        for parameter in dict.fromkeys(all_parameters(self.param_groups)):
            self._follow(parameter)

    def _follow(self, parameter: Tensor) -> None:
        if not parameter.requires_grad or parameter in self._starting_models:
            return
        name = self._parameter_names[parameter]
        start = parameter.detach().clone().requires_grad_()
        self._starting_models[parameter] = start
        self._reducer.add(start, name)
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter, requires_grad=False)
        self._counter.add(ParameterGradient(name, 0, parameter=parameter))

    @property
    def op(self) -> int:
        """Adasum."""
        return ADASUM

    @property
    def process_set(self) -> ProcessSet:
        """All ranks."""
        return self._reducer.options.process_set

    @property
    def backward_passes_per_step(self) -> int:
        """How many backward passes are accumulated before a step."""
        return self._counter.plan.backward_passes

    @backward_passes_per_step.setter
    def backward_passes_per_step(self, passes: int) -> None:
        self.set_backward_passes_per_step(passes)

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Accumulate this many backward passes from now on."""
        self._counter.plan.set_backward_passes(passes)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The parameter groups; an overflow that GradScaler is to find is told to all ranks first."""
        if "_counter" in self.__dict__ and is_asked_by_scaler(1) and _share_overflow(self._starting_models):
            self._counter.plan.reset()
        groups: list[dict[str, Any]] = self.__dict__["param_groups"]
        return groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.__dict__["param_groups"] = groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; those without a name get one."""
        self._wrapped_class.add_param_group(self, param_group)
        groups = self.param_groups
        for index, parameter in enumerate(groups[-1]["params"]):
            self._parameter_names.setdefault(parameter, default_name(len(groups) - 1, index))
            self._follow(parameter)

    def synchronize(self) -> None:
        """Do nothing: there is nothing to wait for before step()."""

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Refuse: the step itself is what the ranks combine."""
        message = "Skipping synchronization is not supported when using Adasum optimizer."
        raise AssertionError(message)
        yield

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make the step of the wrapped optimizer, then combine the changes of all ranks."""
        loss = None if closure is None else closure()
        for parameter in all_parameters(self.param_groups):
            self._follow(parameter)
        pairs = list(self._starting_models.items())
        with torch.no_grad():
            for parameter, start in pairs:
                start.copy_(parameter)
            tell_scheduler(self._optimizer_ref())
            self._wrapped_class.step(self)
            for parameter, start in pairs:
                start.grad = parameter.detach() - start
            self._reducer.synchronize()
            for parameter, start in pairs:
                parameter.copy_(start.add_(start.grad))  # type: ignore[arg-type]
                start.grad = None
        self._counter.plan.reset()
        return loss

    # The wrapped class runs the step hooks and the profiler's record; torch must not add its own.
    step.hooked = True  # type: ignore[attr-defined]

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clear the gradients, as the wrapped optimizer does; not between backward and step."""
        if self._handles:
            message = (
                "optimizer.zero_grad() was called after loss.backward() but before"
                " optimizer.step() or optimizer.synchronize(). This is prohibited as it can cause"
                " a race condition."
            )
            raise AssertionError(message)
        self._wrapped_class.zero_grad(self, *args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Load a state; passes counted so far are forgotten."""
        self._counter.plan.reset()
        self._reducer.reset()
        self._wrapped_class.load_state_dict(self, *args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as an optimizer of the wrapped class."""
        return rebuild_plain, (self._wrapped_class, self.__getstate__())

    find_duplicates = staticmethod(find_duplicates)

    @property
    def _handles(self) -> dict[Tensor, tuple[None, None]]:
        passes = self._counter.plan.backward_passes
        return {g.parameter: (None, None) for g in self._counter.plan.gradients if g.passes_left != passes}

    @property
    def _requires_update(self) -> set[Tensor]:
        return set(self._starting_models)

    @property
    def _allreduce_delay(self) -> dict[Tensor, int]:
        return {gradient.parameter: gradient.passes_left for gradient in self._counter.plan.gradients}


def _share_overflow(parameters: Iterable[Tensor]) -> bool:
    """Give a finite rank an infinite gradient if another has one: all then skip the step alike."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    is_finite = all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
    flag = torch.tensor([0 if is_finite else 1], dtype=torch.int32)
    overflowed = bool(allreduce(flag, name="adasum_optimizer.overflow", op=Max).item())
    if overflowed and is_finite and gradients:
        with torch.no_grad():
            gradients[0].view(-1)[:1].fill_(float("inf"))
    return overflowed


def distributed_adasum_optimizer(
    optimizer: Optimizer,
    named_parameters: Iterable[tuple[str, Tensor]] | None,
    compression: Any,
    backward_passes_per_step: int,
    process_set: ProcessSet,
) -> Any:
    """Wrap an optimizer so that the changes of its steps are combined by Adasum."""
    if process_set is not global_process_set:
        message = f"Adasum does not support non-global process sets yet, got {process_set}"
        raise NotImplementedError(message)
    options = ReduceOptions(ADASUM, 1.0, 1.0, process_set, compression, sparse_as_dense=True)
    reducer = GradientReducer(options, backward_passes_per_step)
    names = parameter_names(optimizer.param_groups, named_parameters)
    wrapped = wrap(_DistributedAdasumOptimizer, optimizer)
    wrapped._set_up(reducer, names)  # noqa: SLF001 - our own
    return wrapped
