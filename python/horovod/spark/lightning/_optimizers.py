"""What `configure_optimizers` may return: one optimizer, and schedulers with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A scheduler, and when it is stepped. `monitor`: the logged value that it is given."""

    scheduler: Any
    interval: str = "epoch"
    frequency: int = 1
    monitor: str | None = None


def parse(configured: Any) -> tuple[Any, list[Scheduled]]:
    """Return the optimizer and the schedulers; ValueError for forms that our loop does not have."""
    optimizers, schedulers = _split(configured)
    if len(optimizers) != 1:
        message = (
            f"configure_optimizers returned {len(optimizers)} optimizers; our loop takes exactly one, "
            "and not manual optimization"
        )
        raise ValueError(message)
    return optimizers[0], [_scheduled(each) for each in schedulers]


def _split(configured: Any) -> tuple[list[Any], list[Any]]:
    if configured is None:
        return [], []
    if isinstance(configured, Mapping):
        scheduler = configured.get("lr_scheduler")
        return [configured["optimizer"]], [] if scheduler is None else [scheduler]
    if isinstance(configured, (list, tuple)):
        items = list(configured)
        if len(items) == 2 and all(isinstance(item, (list, tuple)) for item in items):  # noqa: PLR2004
            return list(items[0]), list(items[1])
        parts = [_split(item) for item in items]
        return [o for part in parts for o in part[0]], [s for part in parts for s in part[1]]
    return [configured], []


def _scheduled(given: Any) -> Scheduled:
    if not isinstance(given, Mapping):
        return Scheduled(given)
    return Scheduled(
        given["scheduler"],
        given.get("interval", "epoch"),
        given.get("frequency", 1),
        given.get("monitor"),
    )


def states_of(schedulers: Sequence[Scheduled]) -> list[Any]:
    """Return how far the schedulers are: the numbers and texts of their states, which hold no code."""
    return [_plain(each.scheduler.state_dict()) for each in schedulers]


def restore(schedulers: Sequence[Scheduled], states: Sequence[Any]) -> None:
    """Let schedulers go on from the states of others of the same kind; what a state lacks stays as it is."""
    if len(schedulers) != len(states):
        return  # the module has other schedulers now, which begin anew
    for each, state in zip(schedulers, states, strict=True):
        each.scheduler.load_state_dict({**each.scheduler.state_dict(), **state})


def _plain(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(_is_plain(each) for each in value)
    return value is None or type(value) in (bool, int, float, str)
