"""Broadcast of the state of an optimizer.

The root describes its state; the others take on that description, whatever they had before, and
receive the tensors. So it works for every optimizer that keeps its state per parameter, also where
only the root has a state (it has loaded a checkpoint), and no step is made that would count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from horovod._core import _native, objects
from horovod._core.process_sets import ProcessSet, global_process_set

from ._broadcast_tensors import broadcast_tensors


class _TensorPlan(NamedTuple):
    """A tensor of the root that travels on its own."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    on_parameter_device: bool
    """False: it is in host memory although the parameter is not, as step counters are."""


class _Plan(NamedTuple):
    """All that the root knows, but for the contents of tensors."""

    options: list[dict[str, Any]]
    state: list[dict[str, Any] | None]
    """By position of the parameter; None: the optimizer has not met it yet."""


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _describe(optimizer: torch.optim.Optimizer) -> _Plan:
    options = [
        {key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups
    ]
    state: list[dict[str, Any] | None] = []
    for parameter in _parameters(optimizer):
        entries = optimizer.state.get(parameter)
        if entries is None:
            state.append(None)
            continue
        state.append(
            {
                key: _TensorPlan(tuple(value.shape), value.dtype, value.device == parameter.device)
                if isinstance(value, torch.Tensor)
                else value
                for key, value in entries.items()
            }
        )
    return _Plan(options, state)


def _check_same_shape(optimizer: torch.optim.Optimizer, plan: _Plan) -> None:
    groups, parameters = len(optimizer.param_groups), len(_parameters(optimizer))
    if groups != len(plan.options) or parameters != len(plan.state):
        message = (
            f"broadcast_optimizer_state: rank {_native.rank()} has {parameters} parameters in "
            f"{groups} groups, the root has {len(plan.state)} in {len(plan.options)}"
        )
        raise ValueError(message)


def _take_options(optimizer: torch.optim.Optimizer, plan: _Plan) -> None:
    for group, options in zip(optimizer.param_groups, plan.options, strict=True):
        for key, value in options.items():
            mine = group.get(key)
            if isinstance(mine, torch.Tensor) and isinstance(value, torch.Tensor):
                # Compiled steps hold on to the tensor of a learning rate.
                mine.copy_(value)
            else:
                group[key] = value


def _fits(mine: object, plan: _TensorPlan, parameter: torch.Tensor) -> bool:
    return (
        isinstance(mine, torch.Tensor)
        and tuple(mine.shape) == plan.shape
        and mine.dtype == plan.dtype
        and (mine.device == parameter.device) == plan.on_parameter_device
    )


def _take_state(optimizer: torch.optim.Optimizer, plan: _Plan) -> None:
    """Give the state the form of the root's; tensors that fit stay where they are."""
    for parameter, entries in zip(_parameters(optimizer), plan.state, strict=True):
        if entries is None:
            optimizer.state.pop(parameter, None)
            continue
        mine = optimizer.state[parameter]
        for key in [key for key in mine if key not in entries]:
            del mine[key]
        for key, value in entries.items():
            if not isinstance(value, _TensorPlan):
                mine[key] = value
            elif not _fits(mine.get(key), value, parameter):
                device = parameter.device if value.on_parameter_device else "cpu"
                mine[key] = torch.empty(value.shape, dtype=value.dtype, device=device)


def _state_tensors(optimizer: torch.optim.Optimizer, plan: _Plan) -> list[tuple[str | None, torch.Tensor]]:
    """List the tensors in the root's order, named `<key>.<how often it came>`."""
    counts: dict[str, int] = {}
    named: list[tuple[str | None, torch.Tensor]] = []
    for parameter, entries in zip(_parameters(optimizer), plan.state, strict=True):
        for key, value in (entries or {}).items():
            if isinstance(value, _TensorPlan):
                number = counts[key] = counts.get(key, 0) + 1
                named.append((f"{key}.{number}", optimizer.state[parameter][key]))
    return named


def _needs_sparse_gradients(optimizer: torch.optim.Optimizer, model: torch.nn.Module | None) -> set[int]:
    if isinstance(optimizer, torch.optim.SparseAdam):
        return {id(parameter) for parameter in _parameters(optimizer)}
    modules = () if model is None else model.modules()
    return {
        id(module.weight) for module in modules if isinstance(module, torch.nn.Embedding) and module.sparse
    }


def _make_zero_gradients(optimizer: torch.optim.Optimizer, model: torch.nn.Module | None) -> None:
    """Leave zero gradients with a fresh optimizer, as programs expect that look at them next."""
    sparse = _needs_sparse_gradients(optimizer, model)
    for parameter in _parameters(optimizer):
        if parameter.requires_grad and parameter.grad is None:
            zero = torch.zeros_like(parameter)
            parameter.grad = zero.to_sparse() if id(parameter) in sparse else zero


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer,
    root_rank: int,
    model: torch.nn.Module | None = None,
    *,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Give every rank the options and the state of the root's optimizer.

    LBFGS is not supported: its state does not belong to parameters.

    Arguments:
        optimizer: a plain or a distributed one; LBFGS is refused.
        root_rank: the rank whose value counts; a global rank, also in a process set.
        model: inspected for embeddings with sparse gradients.
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: an optimizer of the class LBFGS.
        HorovodInternalError: a lost rank, or no `init`.

    """
    if isinstance(optimizer, torch.optim.LBFGS):
        message = "broadcast_optimizer_state: torch.optim.LBFGS is not supported"
        raise ValueError(message)  # noqa: TRY004 - type of the public API
    if len(optimizer.state) == 0:
        _make_zero_gradients(optimizer, model)
    is_root = _native.rank() == root_rank
    plan: _Plan = objects.broadcast_object(
        _describe(optimizer) if is_root else None, root_rank, "optimizer_state", process_set
    )
    if not is_root:
        _check_same_shape(optimizer, plan)
        _take_options(optimizer, plan)
        _take_state(optimizer, plan)
    broadcast_tensors(_state_tensors(optimizer, plan), root_rank, process_set)
