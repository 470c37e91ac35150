"""The loss of several outputs, with weights of labels and of rows."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

Loss = Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor], torch.Tensor | None], torch.Tensor]


def loss_functions(loss: Any, constructors: Any, label_count: int) -> list[Any]:
    """Return one function per label, from functions or from what constructs them."""
    given = [make() for make in _listed(constructors)] if constructors is not None else _listed(loss)
    if len(given) == 1:
        given *= label_count
    if len(given) != label_count:
        message = f"{len(given)} loss functions for {label_count} labels: give one, or one for each"
        raise ValueError(message)
    return given


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def combined_loss(functions: Sequence[Any], weights: Sequence[float] | None, *, by_row: bool) -> Loss:
    """Return the weighted sum of the labels' losses; `by_row`: with a weight for each row.

    Losses of rows are multiplied by their weights and averaged over the rows, not divided by the sum of
    the weights: a row counts the same in whichever batch it is.
    """
    shares = list(weights) if weights else [1.0 / len(functions)] * len(functions)
    if by_row:
        functions = [_unreduced(function) for function in functions]

    def loss(outputs: Any, labels: Any, sample_weights: Any = None) -> torch.Tensor:
        parts = []
        for function, share, output, label in zip(functions, shares, outputs, labels, strict=True):
            value = function(output, label)
            if sample_weights is not None:
                value = (_rows(value) * sample_weights.flatten()).mean()
            parts.append(value * share)
        return torch.stack(parts).sum()

    return loss


def _rows(losses: torch.Tensor) -> torch.Tensor:
    """Return one loss per row: the mean of what a row has."""
    return losses.reshape(len(losses), -1).mean(dim=1)


def _unreduced(function: Any) -> Any:
    """Return a loss that gives one number per element: `reduction` of an object, or of a function."""
    if isinstance(getattr(function, "reduction", None), str):
        whole = copy.copy(function)
        whole.reduction = "none"
        return whole
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    has_keywords = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    if "reduction" not in parameters and not has_keywords:
        message = (
            f"sample_weight_col needs losses of single rows, but the loss {function!r} has no parameter "
            "`reduction`; give one that takes reduction='none', as those of torch.nn.functional do"
        )
        raise ValueError(message)
    return lambda output, label: function(output, label, reduction="none")
