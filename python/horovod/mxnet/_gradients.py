"""What the optimizer and the trainer share: how gradients are scaled and sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from horovod._core.basics import basics
from horovod._core.codes import ALLREDUCE, AVERAGE, NO_WIRE_DTYPE, SUM
from horovod._core.gradients import split_evenly
from horovod._core.process_sets import ProcessSet

from ._push import Asked
from ._reductions import run_group_in_place, run_in_place

_FIRST_NCCL_THAT_AVERAGES = 21000


class Scaling(NamedTuple):
    """Where the average is made of the sum, and the factors around it."""

    op: int
    prescale: float
    postscale: float
    rescale: float
    """What the optimizer's own factor is multiplied with."""


def takes_part(process_set: ProcessSet) -> bool:
    """Return whether this rank has somebody to exchange gradients with."""
    return bool(process_set.included()) and (process_set.size() or 1) > 1


def scaling(predivide_factor: float, process_set: ProcessSet) -> Scaling:
    """Split an average into factors before and after the sum.

    As in the original without NCCL 2.10, the optimizer divides, in the pass that it makes anyway. A rank that
    exchanges nothing has nothing to divide.
    """
    if predivide_factor != 1.0 and basics.rocm_built():
        message = "gradient_predivide_factor not supported yet with ROCm"
        raise ValueError(message)
    if not takes_part(process_set):
        return Scaling(SUM, 1.0, 1.0, 1.0)
    if basics.rocm_built() or basics.nccl_built() < _FIRST_NCCL_THAT_AVERAGES:
        return Scaling(SUM, 1.0 / predivide_factor, 1.0, predivide_factor / (process_set.size() or 1))
    return Scaling(AVERAGE, 1.0 / predivide_factor, predivide_factor, 1.0)


class Gradient(NamedTuple):
    """A gradient of a step, by its index among them."""

    index: Any
    array: Any


class Reducer(NamedTuple):
    """Sums gradients over the ranks of a set, in place."""

    factors: Scaling
    process_set: ProcessSet
    prefix: str

    def _asked(self, name: str, priority: int, wire_dtype: int) -> Asked:
        factors = self.factors
        return Asked(
            ALLREDUCE,
            "allreduce",
            f"{self.prefix}{name}",
            priority,
            self.process_set,
            factors.op,
            factors.prescale,
            factors.postscale,
            wire_dtype,
        )

    def reduce(self, gradient: Gradient, priority: int, wire_dtype: int = NO_WIRE_DTYPE) -> None:
        """Push one gradient."""
        run_in_place(self._asked(str(gradient.index), priority, wire_dtype), gradient.array)

    def reduce_group(
        self, gradients: Sequence[Gradient], priority: int, wire_dtype: int = NO_WIRE_DTYPE
    ) -> None:
        """Push several gradients as one operation, named after the first and the last."""
        name = f"{gradients[0].index}:{gradients[-1].index}"
        run_group_in_place(
            self._asked(name, priority, wire_dtype), [gradient.array for gradient in gradients]
        )


def groups_of_one_dtype(gradients: Sequence[Gradient], num_groups: int) -> Iterable[list[Gradient]]:
    """Split gradients into that many groups, and each of these by dtype."""
    for part in split_evenly(gradients, min(num_groups, len(gradients))):
        by_dtype: dict[str, list[Gradient]] = {}
        for gradient in part:
            by_dtype.setdefault(str(gradient.array.dtype), []).append(gradient)
        yield from by_dtype.values()


def check_num_groups(num_groups: int) -> None:
    """Refuse a number of groups that cannot be."""
    if not isinstance(num_groups, int) or num_groups < 0:
        message = f"num_groups must be an integer of at least 0, got {num_groups!r}"
        raise ValueError(message)
