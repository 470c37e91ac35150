"""Steps over groups of batches, for functions that make a step for each batch."""

from __future__ import annotations

from typing import Any


class GroupedOptimizer:
    """An optimizer whose gradients grow over a group of batches; all else is that of the wrapped one.

    `zero_grad` has its effect on the first batch of a group alone, `step` on the last. Used by one thread.
    """

    def __init__(self, optimizer: Any, size: int) -> None:
        """Before the first batch of groups of this size."""
        self._optimizer = optimizer
        self._size = size
        self._is_first = True
        self._is_last = True

    def begin(self, index: int, count: int) -> None:
        """Say which batch of an epoch comes, and of how many: the last group of an epoch may be smaller."""
        self._is_first = index % self._size == 0
        self._is_last = (index + 1) % self._size == 0 or index + 1 == count

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clear the gradients, if a group begins."""
        if self._is_first:
            self._optimizer.zero_grad(*args, **kwargs)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Exchange the gradients and make a step, if a group ends."""
        return self._optimizer.step(*args, **kwargs) if self._is_last else None

    def __getattr__(self, name: str) -> Any:
        """Everything else."""
        return getattr(self._optimizer, name)
