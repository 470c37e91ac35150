"""DistributedOptimizer: an optimizer of the module API that sums gradients before it applies them."""

from __future__ import annotations

from typing import Any

from horovod._core.process_sets import ProcessSet, global_process_set

from ._framework import mx
from ._gradients import (
    Gradient,
    Reducer,
    check_num_groups,
    groups_of_one_dtype,
    scaling,
    takes_part,
)

_OWN = frozenset({"_optimizer", "_reducer", "_num_groups", "_process_set", "_gradient_predivide_factor"})


class DistributedOptimizer(mx.optimizer.Optimizer):
    """Reduces gradients over the ranks in place, and hands them to the optimizer that it wraps.

    Attributes are those of the wrapped optimizer, to read and to write. For gluon use DistributedTrainer.

    Arguments:
        optimizer: computes the update from the combined gradients.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        num_groups: old name of `groups` as a number.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: an option that is refused, such as a predivide factor without Average.

    """

    def __init__(
        self,
        optimizer: Any,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        """Wrap an optimizer; its rescale_grad gets the division by the number of ranks."""
        if not isinstance(optimizer, mx.optimizer.Optimizer):
            message = (
                f"DistributedOptimizer: expected an mx.optimizer.Optimizer, got {type(optimizer).__name__}"
            )
            raise ValueError(message)  # noqa: TRY004 - a mistake of the caller is a ValueError here
        check_num_groups(num_groups)
        self._optimizer = optimizer
        self._num_groups = num_groups
        self._process_set = process_set
        self._gradient_predivide_factor = gradient_predivide_factor
        factors = scaling(gradient_predivide_factor, process_set)
        self._reducer = Reducer(factors, process_set, "")
        optimizer.rescale_grad *= factors.rescale

    def __getattr__(self, item: str) -> Any:
        """Read what the wrapped optimizer has."""
        if item in _OWN:  # while an object is being unpickled
            raise AttributeError(item)
        return getattr(self._optimizer, item)

    def __setattr__(self, item: str, value: Any) -> None:
        """Write to the wrapped optimizer, whose methods look there."""
        if item in _OWN:
            object.__setattr__(self, item, value)
        else:
            setattr(self._optimizer, item, value)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the wrapped optimizer as it wants to be, for Module.save_optimizer_states."""
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Put the parts back."""
        self.__dict__.update(state)

    def create_state(self, index: Any, weight: Any) -> Any:
        """Make the state of one weight."""
        return self._optimizer.create_state(index, weight)

    def create_state_multi_precision(self, index: Any, weight: Any) -> Any:
        """Make the state of one weight, with a copy in float32 if it is in float16."""
        return self._optimizer.create_state_multi_precision(index, weight)

    def _do_allreduce(self, index: Any, grad: Any) -> None:
        if not takes_part(self._process_set):
            return
        if not isinstance(index, (tuple, list)):
            self._reducer.reduce(Gradient(index, grad), 0)
            return
        gradients = [Gradient(one, array) for one, array in zip(index, grad, strict=True)]
        if self._num_groups > 0:
            for i, group in enumerate(groups_of_one_dtype(gradients, self._num_groups)):
                self._reducer.reduce_group(group, -i)
            return
        for i, gradient in enumerate(gradients):
            self._reducer.reduce(gradient, -i)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Reduce gradients, then update weights."""
        self._do_allreduce(index, grad)
        self._optimizer.update(index, weight, grad, state)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Reduce gradients, then update weights, of which float16 ones have a copy in float32."""
        self._do_allreduce(index, grad)
        self._optimizer.update_multi_precision(index, weight, grad, state)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate of the wrapped optimizer."""
        self._optimizer.set_learning_rate(lr)

    def set_lr_mult(self, args_lr_mult: Any) -> None:
        """Set factors of the learning rate."""
        self._optimizer.set_lr_mult(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: Any) -> None:
        """Set factors of the weight decay."""
        self._optimizer.set_wd_mult(args_wd_mult)
