"""DistributedTrainer: a trainer of gluon that sums gradients over the ranks."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
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
from .compression import Compression, wire_dtype
from .optimizer import DistributedOptimizer


def _ordered(params: Any) -> Any:
    """Return parameters in an order that is the same on all ranks."""
    if isinstance(params, Mapping):
        return OrderedDict(sorted(params.items()))
    if isinstance(params, (list, tuple)):
        return sorted(params, key=lambda parameter: str(parameter.name))
    return params


class DistributedTrainer(mx.gluon.Trainer):
    """A gluon Trainer whose step() averages gradients over the ranks before it applies them.

    step(batch_size) takes the size of this rank's batch. Trainers that exist side by side need prefixes, by
    which the names of their gradients differ.

    Arguments:
        params: parameters of a gluon block, as for gluon.Trainer.
        optimizer: an optimizer of MXNet or its name.
        optimizer_params: arguments of an optimizer given by name.
        compression: how gradients travel, e.g. Compression.fp16.
        gradient_predivide_factor: splits an average into a division before the sum by this
            factor, and one after it by the size over this factor.
        prefix: what the names of the operations begin with, to tell several models apart.
        num_groups: old name of `groups` as a number.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: an option that is refused, such as a predivide factor without Average.

    """

    def __init__(
        self,
        params: Any,
        optimizer: Any,
        optimizer_params: Mapping[str, Any] | None = None,
        compression: Any = Compression.none,
        gradient_predivide_factor: float = 1.0,
        prefix: str | None = None,
        num_groups: int = 0,
        process_set: ProcessSet = global_process_set,
    ) -> None:
        """Take what a Trainer takes, without a kvstore: the ranks exchange gradients themselves."""
        if prefix is not None and not isinstance(prefix, str):
            message = f"DistributedTrainer: prefix must be a string, got {type(prefix).__name__}"
            raise AssertionError(message)
        check_num_groups(num_groups)
        factors = scaling(gradient_predivide_factor, process_set)
        if isinstance(optimizer, DistributedOptimizer):
            warnings.warn(
                "DistributedTrainer does not take DistributedOptimizer as its optimizer: both would reduce "
                "gradients. The optimizer that it wraps is used",
                stacklevel=2,
            )
            wrapped = optimizer._optimizer  # noqa: SLF001 - ours
            wrapped.rescale_grad /= optimizer._reducer.factors.rescale  # noqa: SLF001 - ours
            optimizer = wrapped
        super().__init__(_ordered(params), optimizer, optimizer_params=optimizer_params, kvstore=None)
        self._scale *= factors.rescale
        self._compression = compression
        self._num_groups = num_groups
        self._process_set = process_set
        self._reducer = Reducer(factors, process_set, prefix or "")

    def _gradients(self) -> list[Gradient]:
        """Return the gradients of this step; a rank has one context, and so one of each."""
        gradients = []
        for i, parameter in enumerate(self._params):
            if parameter.grad_req == "null":
                continue
            arrays = parameter.list_grad()
            if len(arrays) != 1:
                message = (
                    f"DistributedTrainer: parameter '{parameter.name}' is on {len(arrays)} contexts, "
                    "expected one; start one process for each"
                )
                raise ValueError(message)
            gradients.append(Gradient(i, arrays[0]))
        return gradients

    def _allreduce_grads(self) -> None:
        if not takes_part(self._process_set):
            return
        gradients = self._gradients()
        if self._num_groups > 0 and gradients:
            for i, group in enumerate(groups_of_one_dtype(gradients, self._num_groups)):
                self._reduce_group(group, -i)
            return
        for gradient in gradients:
            self._reduce_group([gradient], -gradient.index)

    def _reduce_group(self, gradients: list[Gradient], priority: int) -> None:
        """Reduce gradients of one dtype, in the core's compression or in that of the user."""
        wire = wire_dtype(self._compression, gradients[0].array)
        sent, contexts = gradients, []
        if wire is None:
            packed = [self._compression.compress(gradient.array) for gradient in gradients]
            sent = [Gradient(gradients[i].index, array) for i, (array, _) in enumerate(packed)]
            contexts = [context for _, context in packed]
        code = {} if wire is None else {"wire_dtype": wire}
        if self._num_groups > 0:
            self._reducer.reduce_group(sent, priority, **code)
        else:
            self._reducer.reduce(sent[0], priority, **code)
        for gradient, packed_one, context in zip(gradients, sent, contexts, strict=False):
            gradient.array[:] = self._compression.decompress(packed_one.array, context)
