"""A model and its optimizer as bytes: together, so that the optimizer keeps the parameters of the model."""

from __future__ import annotations

import copy
import io
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import torch


def pack(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> bytes:
    """Return both as bytes; an optimizer of other parameters is made anew for those of the model."""
    if optimizer is not None and not _belong_together(model, optimizer):
        optimizer = rebuilt(model, optimizer)
    packed: bytes = cloudpickle.dumps((model, optimizer))
    return packed


def unpack(packed: bytes) -> tuple[torch.nn.Module, Any]:
    """Return what `pack` was given; the bytes come from the driver."""
    model, optimizer = cloudpickle.loads(packed)
    return model, optimizer


def _belong_together(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> bool:
    known = {id(parameter) for parameter in model.parameters()}
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    return held <= known


def rebuilt(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return an optimizer of the same class and state for the parameters of a model."""
    kind: Any = type(optimizer)
    made = kind(model.parameters(), lr=1)
    try:
        made.load_state_dict(optimizer.state_dict())
    except ValueError as error:
        message = (
            f"the optimizer {kind.__name__} has other parameters than the model ({error}): "
            "make it from model.parameters()"
        )
        raise ValueError(message) from error
    return made  # type: ignore[no-any-return]


def trained_copy(model: torch.nn.Module, optimizer: Any, checkpoint: bytes) -> tuple[torch.nn.Module, Any]:
    """Return copies of both with the state of a checkpoint; those of the user stay as they are."""
    model, optimizer = unpack(pack(model, optimizer))
    state = load_checkpoint(checkpoint)
    model.load_state_dict(state["model"])
    if optimizer is not None:
        optimizer.load_state_dict(state["optimizer"])
    return model, optimizer


def save_checkpoint(model: torch.nn.Module, optimizer: Any, **more: Any) -> bytes:
    """Return the state of both, and what else belongs to it: numbers and texts."""
    buffer = io.BytesIO()
    states = {"model": _on_cpu(model.state_dict()), "optimizer": _on_cpu(optimizer.state_dict())}
    torch.save({**states, **more}, buffer)
    return buffer.getvalue()


def load_checkpoint(checkpoint: bytes) -> dict[str, Any]:
    """Return the states in a checkpoint; numbers and tensors alone, no code."""
    state: dict[str, Any] = torch.load(io.BytesIO(checkpoint), map_location="cpu", weights_only=True)
    return state


def _on_cpu(state: Any) -> Any:
    if isinstance(state, torch.Tensor):
        return state.detach().cpu()
    if isinstance(state, dict):
        moved = copy.copy(state)
        for key, value in state.items():
            moved[key] = _on_cpu(value)
        return moved
    if isinstance(state, list):
        return [_on_cpu(value) for value in state]
    return state
