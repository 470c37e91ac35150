"""How an optimizer of Keras reduces gradients, whatever the backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from horovod._core.codes import AVERAGE, SUM
from horovod._core.process_sets import ProcessSet, global_process_set

Reducer = Callable[..., list[Any]]
"""(gradients without None, their variables) to reduced gradients.

That of TensorFlow also takes use_generic_names=True: operations are then named by their number.
"""


@dataclass(frozen=True)
class OptimizerOptions:
    """The parameters of DistributedOptimizer that the reduction needs."""

    name: str
    device_dense: str = ""
    device_sparse: str = ""
    compression: Any = None
    sparse_as_dense: bool = False
    gradient_predivide_factor: float = 1.0
    op: int = AVERAGE
    groups: Any = None
    process_set: ProcessSet = global_process_set
    backward_passes_per_step: int = 1
    average_aggregated_gradients: bool = False
    scale_local_gradients: bool = True


def check_op(op: int) -> None:
    """Refuse what cannot be done to gradients here."""
    if op not in (AVERAGE, SUM):
        message = f"DistributedOptimizer of Keras supports op=Average and op=Sum, got {op}"
        raise ValueError(message)


def variable_key(variable: Any) -> int:
    """Return the same number for a variable of Keras 3 and for the tf.Variable inside it."""
    value = getattr(variable, "_value", None)
    is_inside = value is not None and type(value).__module__.startswith("tensorflow.")
    return id(value) if is_inside and hasattr(value, "assign") else id(variable)


def are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether these are the same objects, one by one."""
    return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))
