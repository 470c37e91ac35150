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


def scale_rates(schedulers: Sequence[Scheduled], factor: int) -> None:
    """Let schedulers begin from rates that are so many times larger, those inside of others too."""
    for each in schedulers:
        _scale(each.scheduler, factor)


def _scale(scheduler: Any, factor: int) -> None:
    rates = getattr(scheduler, "base_lrs", None)
    if rates is not None:
        scheduler.base_lrs = [rate * factor for rate in rates]
    for inner in getattr(scheduler, "_schedulers", ()):
        _scale(inner, factor)


def states_of(schedulers: Sequence[Scheduled]) -> list[Any]:
    """Return how far the schedulers are: the numbers and texts of their states, which hold no code."""
    return [_plain(getattr(each.scheduler, "state_dict", dict)()) for each in schedulers]


def restore(schedulers: Sequence[Scheduled], states: Sequence[Any]) -> bool:
    """Let schedulers go on from the states of others of the same kind; what a state lacks stays as it is.

    False: the module has other schedulers now, which begin anew.
    """
    if len(schedulers) != len(states):
        return False
    for each, state in zip(schedulers, states, strict=True):
        if hasattr(each.scheduler, "load_state_dict"):
            each.scheduler.load_state_dict(_merged(each.scheduler.state_dict(), state))
    return True


_NOT_PLAIN = object()


def _plain(value: Any) -> Any:
    if type(value) is dict:
        parts = {name: _plain(each) for name, each in value.items()}
        return {name: part for name, part in parts.items() if part is not _NOT_PLAIN}
    if type(value) in (list, tuple):
        items = [_plain(each) for each in value]
        return _NOT_PLAIN if any(item is _NOT_PLAIN for item in items) else type(value)(items)
    return value if value is None or type(value) in (bool, int, float, str) else _NOT_PLAIN


def _merged(own: Any, given: Any) -> Any:
    """What was given, and what it lacks from one's own: also inside of the states of inner schedulers."""
    if type(own) is dict and type(given) is dict:
        return {**own, **{name: _merged(own.get(name), value) for name, value in given.items()}}
    if type(own) is list and type(given) is list and len(own) == len(given):
        return [_merged(*pair) for pair in zip(own, given, strict=True)]
    return given
