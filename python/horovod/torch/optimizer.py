"""DistributedOptimizer: an optimizer whose step uses the gradients of all ranks.

Hooks submit each gradient when backward has completed it; step() waits for them. When the reduction
itself runs is chosen by hvd.gradient_schedule().
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor
from torch.optim import Optimizer

from horovod._core.gradients import check_groups, default_name, find_duplicates, form_groups, scale_factors

from ._adasum_optimizer import (
    _DistributedAdasumOptimizer,  # noqa: F401 - programs use it
    distributed_adasum_optimizer,
)
from ._gradient_reducer import GradientReducer
from ._gradient_submission import ReduceOptions
from ._wrapping import (
    all_parameters,
    is_asked_by_scaler,
    is_parameter,
    parameter_names,
    rebuild_plain,
    tell_scheduler,
    wrap,
)
from .compression import Compression
from .functions import broadcast_object
from .mpi_ops import Adasum, Average, ProcessSet, global_process_set, size

__all__ = ["DistributedOptimizer"]

_CALLED_TWICE = (
    "optimizer.step() called without optimizer.skip_synchronize() context after"
    " optimizer.synchronize(). This can cause training slowdown. You may want to consider using"
    " optimizer.skip_synchronize() context if you use optimizer.synchronize() in your code."
)
_ZEROED_TOO_EARLY = (
    "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or"
    " optimizer.synchronize(). This is prohibited as it can cause a race condition."
)


def _is_elastic() -> bool:
    return os.environ.get("HOROVOD_ELASTIC") == "1"


class _DistributedOptimizer(Optimizer):
    """The methods of the subclass that DistributedOptimizer makes of the user's class.

    They are copied there, so they call the user's class by `_wrapped_class` instead of super().
    """

    _wrapped_class: ClassVar[type[Optimizer]]
    _reducer: GradientReducer
    _parameter_names: dict[Tensor, str]
    _groups: int | list[list[Tensor]] | None
    _gradient_predivide_factor: float
    _should_synchronize: bool
    _synchronized: bool

    def _set_up(
        self,
        reducer: GradientReducer,
        names: dict[Tensor, str],
        predivide_factor: float,
        groups: int | list[list[Tensor]] | None,
    ) -> None:
        self._reducer = reducer
        self._parameter_names = names
        self._gradient_predivide_factor = predivide_factor
        self._groups = groups
        self._synchronized = False
        self._should_synchronize = True
        if self._takes_part():
            for parameter in dict.fromkeys(all_parameters(self.param_groups)):
                reducer.add(parameter, names[parameter])
            if groups is not None:
                self._form_groups(groups)

    def _takes_part(self) -> bool:
        is_alone = size() == 1 and not _is_elastic()
        return bool(self.process_set.included()) and not is_alone

    def _form_groups(self, groups: int | list[list[Tensor]]) -> None:
        """All ranks form the groups in the order of the set's first rank.

        In an elastic job a newcomer makes its optimizer alone, so that the order is that of the
        parameters, on which the ranks of one program agree.
        """
        gradients = {gradient.name: gradient for gradient in self._reducer.plan.gradients}
        names: list[Any] = list(gradients)
        if not _is_elastic():
            root = (self.process_set.ranks or [0])[0]
            names = broadcast_object(names, root_rank=root, process_set=self.process_set)
        if set(names) != set(gradients):
            differing = ", ".join(sorted(set(names) ^ set(gradients)))
            message = f"DistributedOptimizer groups: ranks differ in the parameters {differing}"
            raise ValueError(message)
        own = self._parameter_names
        wanted = groups if isinstance(groups, int) else [[own.get(p) for p in g] for g in groups]
        formed = form_groups(names, wanted, key=str)
        self._reducer.plan.set_groups([gradients[name] for name in group] for group in formed)

    # ---- options

    @property
    def process_set(self) -> ProcessSet:
        """The ranks whose gradients are combined."""
        return self._reducer.options.process_set

    @property
    def op(self) -> int:
        """How gradients are combined."""
        return self._reducer.options.op

    @property
    def sparse_as_dense(self) -> bool:
        """Whether sparse gradients are sent as dense ones."""
        return self._reducer.options.sparse_as_dense

    @sparse_as_dense.setter
    def sparse_as_dense(self, value: bool) -> None:
        self._reducer.set_options(replace(self._reducer.options, sparse_as_dense=value))

    @property
    def gradient_predivide_factor(self) -> float:
        """What gradients are divided by before they are summed, and multiplied by afterwards."""
        return self._gradient_predivide_factor

    @gradient_predivide_factor.setter
    def gradient_predivide_factor(self, factor: float) -> None:
        before, after = scale_factors(average=self.op == Average, predivide_factor=factor)
        self._reducer.set_options(replace(self._reducer.options, prescale=before, postscale=after))
        self._gradient_predivide_factor = factor

    @property
    def backward_passes_per_step(self) -> int:
        """How many backward passes are accumulated before gradients are reduced."""
        return self._reducer.plan.backward_passes

    @backward_passes_per_step.setter
    def backward_passes_per_step(self, passes: int) -> None:
        self.set_backward_passes_per_step(passes)

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Accumulate this many backward passes from now on."""
        self._reducer.plan.set_backward_passes(passes)

    # ---- parameters

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The parameter groups; gradients under way are waited for first.

        Whoever asks for them between backward() and step() is about to use the gradients:
        GradScaler unscales them and looks for overflows, which must be those of all ranks.
        """
        reducer = self.__dict__.get("_reducer")
        if (
            reducer is not None
            and not reducer.is_reduced
            and self._should_synchronize
            and ((reducer.is_busy and reducer.is_complete) or is_asked_by_scaler(1))
        ):
            reducer.synchronize()
        groups: list[dict[str, Any]] = self.__dict__["param_groups"]
        return groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.__dict__["param_groups"] = groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; those without a name get one."""
        self._wrapped_class.add_param_group(self, param_group)
        groups = self.param_groups
        group_index = len(groups) - 1
        for index, parameter in enumerate(groups[-1]["params"]):
            name = self._parameter_names.setdefault(parameter, default_name(group_index, index))
            if self._takes_part():
                self._reducer.add(parameter, name)

    # ---- a step

    def synchronize(self) -> None:
        """Wait until the gradients of all ranks are in place.

        Call it before anything that uses gradients, such as clipping, and step() inside of
        skip_synchronize().
        """
        self._reducer.synchronize()
        self._synchronized = True

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """In this context step() takes the gradients as they are."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Wait for the gradients of all ranks, then make the step of the wrapped optimizer.

        A closure that runs backward is followed by the reduction each time it is called.
        """
        reducer = self._reducer
        if self._should_synchronize and (closure is None or reducer.is_busy):
            if self._synchronized and reducer.is_reduced:
                warnings.warn(_CALLED_TWICE, stacklevel=2)
                reducer.synchronize()
            elif not reducer.is_reduced:
                reducer.synchronize()
        self._synchronized = False
        tell_scheduler(self._optimizer_ref())  # type: ignore[attr-defined]
        try:
            if closure is None:
                return self._wrapped_class.step(self)
            return self._wrapped_class.step(self, self._reducing(closure))
        finally:
            reducer.is_reduced = False

    # The wrapped class runs the step hooks and the profiler's record; torch must not add its own.
    step.hooked = True  # type: ignore[attr-defined]

    def _reducing(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def reduced() -> Any:
            loss = closure()
            if self._should_synchronize and self._reducer.is_busy:
                self._reducer.synchronize()
            return loss

        return reduced

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clear the gradients, as the wrapped optimizer does; not while they are under way."""
        if self._handles:
            raise AssertionError(_ZEROED_TOO_EARLY)
        self._reducer.is_reduced = False
        self._reducer.adopt()
        self._wrapped_class.zero_grad(self, *args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> None:
        """Load a state; gradients under way are given up."""
        self._reducer.reset()
        self._synchronized = False
        self._wrapped_class.load_state_dict(self, *args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as an optimizer of the wrapped class."""
        return rebuild_plain, (self._wrapped_class, self.__getstate__())

    # ---- names that programs written for the original look at

    find_duplicates = staticmethod(find_duplicates)

    @property
    def _handles(self) -> dict[Tensor, tuple[int | None, None]]:
        plan = self._reducer.plan
        return {
            gradient.parameter: (gradient.handle, None)
            for gradient in plan.gradients
            if gradient.submitted or gradient.passes_left != plan.backward_passes
        }

    @property
    def _requires_update(self) -> set[Tensor]:
        return self._reducer.required

    @_requires_update.setter
    def _requires_update(self, parameters: set[Tensor]) -> None:
        # Programs empty it so that parameters which no rank uses get no gradient of zeros.
        self._reducer.required = parameters

    @property
    def _compression(self) -> Any:
        return self._reducer.options.compression

    @property
    def _allreduce_delay(self) -> dict[Tensor, int]:
        return {g.parameter: g.passes_left for g in self._reducer.plan.gradients}


def DistributedOptimizer(  # noqa: N802 - public name and signature
    optimizer: Optimizer,
    named_parameters: Iterable[tuple[str, Tensor]] | None = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: int | list[list[Tensor]] | None = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
) -> Any:
    """Wrap an optimizer so that its step uses the gradients of all ranks.

    Gradients are handed over while backward runs. The result has the class name, the parameter groups
    and the state of the optimizer given, which should not be used any more.

    Arguments:
        optimizer: computes the update from the combined gradients.
        named_parameters: names for the parameters, usually model.named_parameters().
        compression: how gradients travel, e.g. Compression.fp16.
        backward_passes_per_step: passes whose gradients are summed locally before they travel.
        op: Average, Sum, or Adasum, which combines the updates instead of the gradients.
        gradient_predivide_factor: splits an average into a division before the sum by this factor,
            and one after it by the size over this factor.
        num_groups: the old name of `groups` as a number.
        groups: a number of groups, or lists of parameters, whose gradients travel together.
        sparse_as_dense: send sparse gradients as dense ones.
        process_set: the ranks whose gradients are combined.

    """
    prescale, postscale = scale_factors(average=op == Average, predivide_factor=gradient_predivide_factor)
    if num_groups != 0:
        warnings.warn(
            "Parameter `num_groups` has been replaced by `groups` and will be removed.",
            DeprecationWarning,
            stacklevel=2,
        )
        groups = num_groups if groups is None else groups
    if groups is not None:
        check_groups(groups, is_parameter)
    if op == Adasum and size() > 1:
        return distributed_adasum_optimizer(
            optimizer, named_parameters, compression, backward_passes_per_step, process_set
        )
    options = ReduceOptions(op, prescale, postscale, process_set, compression, sparse_as_dense)
    reducer = GradientReducer(options, backward_passes_per_step)
    names = parameter_names(optimizer.param_groups, named_parameters)
    earlier = optimizer.__dict__.get("_reducer")
    if earlier is not None:
        earlier.close()
    wrapped = wrap(_DistributedOptimizer, optimizer)
    wrapped._set_up(reducer, names, gradient_predivide_factor, groups)  # noqa: SLF001 - our own
    return wrapped
