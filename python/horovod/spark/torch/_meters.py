"""Averages of losses and metrics over the batches of an epoch and over all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

import horovod.torch as hvd


def metric_groups(metrics: Any, label_count: int) -> list[list[Any]]:
    """Return groups of one function per label; a single function stands for all labels."""
    groups = []
    for entry in metrics or []:
        group = list(entry) if isinstance(entry, (list, tuple)) else [entry] * label_count
        if len(group) == 1:
            group *= label_count
        if len(group) != label_count:
            message = f"a group of {len(group)} metrics for {label_count} labels: give one, or one for each"
            raise ValueError(message)
        groups.append(group)
    return groups


def as_float(value: Any) -> float:
    """Return the number in a tensor, or a number."""
    return float(value.detach() if isinstance(value, torch.Tensor) else value)


class Meters:
    """Sums of one stage of an epoch on this rank. `averages` is a collective: every rank calls it."""

    def __init__(self, groups: Sequence[Sequence[Any]], labels: Sequence[str]) -> None:
        """Begin with nothing."""
        self._groups = groups
        self._labels = labels
        # Plain numbers: a step that adds tensors of two elements takes longer than cutting its batch.
        self._sums = [0.0] * (2 + len(groups) * len(labels))

    def add(
        self, loss: Any, outputs: Sequence[torch.Tensor], labels: Sequence[torch.Tensor], rows: int
    ) -> None:
        """Take in one batch, by the number of its rows."""
        values = [1.0, as_float(loss)]
        with torch.no_grad():
            for group in self._groups:
                values += [as_float(each(o, t)) for each, o, t in zip(group, outputs, labels, strict=True)]
        for place, value in enumerate(values):
            self._sums[place] += rows * value

    def averages(self, stage: str) -> dict[str, Any]:
        """Return the loss and the metrics over the rows of all ranks."""
        sums = torch.tensor(self._sums, dtype=torch.float64)
        total = hvd.allreduce(sums, op=hvd.Sum, name=f"estimator.meters.{stage}")
        loss, *metrics = (total[1:] / total[0].clamp(min=1)).tolist()
        width = len(self._labels)
        groups = [
            {
                f"group_{index}_{label}": metrics[index * width + place]
                for place, label in enumerate(self._labels)
            }
            for index in range(len(self._groups))
        ]
        return {"loss": loss, "all_metrics": groups}
