"""Shapes of features, labels and outputs. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch


def reshaped(name: str, rows: torch.Tensor, shape: Sequence[int] | None) -> torch.Tensor:
    """Return a batch in the shape that was given: with -1 or the batch size in front, or that of a row."""
    if shape is None:
        return rows
    if -1 in shape:
        return rows.reshape(tuple(shape))
    elements = rows.numel() // max(len(rows), 1)
    wanted = math.prod(shape)
    if wanted == elements:
        return rows.reshape(len(rows), *shape)
    if wanted == rows.numel():
        return rows.reshape(tuple(shape))
    message = f"column '{name}' has {elements} elements in a row, which do not fit the shape {list(shape)}"
    raise ValueError(message)


def outputs_and_labels(
    outputs: Any, labels: Sequence[torch.Tensor], label_shapes: Sequence[Sequence[int]] | None
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return outputs as a list, and labels in their shapes: those given, else those of the outputs."""
    found = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    if len(found) != len(labels):
        message = f"the model returned {len(found)} outputs for {len(labels)} labels: they must be as many"
        raise ValueError(message)
    if label_shapes:
        shaped = [reshaped("label", label, shape) for label, shape in zip(labels, label_shapes, strict=True)]
    else:
        shaped = [
            label.reshape(output.shape) if label.numel() == output.numel() else label
            for label, output in zip(labels, found, strict=True)
        ]
    return found, shaped
