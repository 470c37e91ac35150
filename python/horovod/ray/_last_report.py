"""The metrics that rank 0 reported last. Ray Train V2 keeps those of reports with a checkpoint alone.

A callback in Ray's controller hands them to a small actor, where the driver finds them after the run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray

_logger = logging.getLogger("horovod.ray")
_SECONDS = 30.0


class _Box:
    """Holds one value."""

    def __init__(self) -> None:
        self._value: Any = None

    def put(self, value: Any) -> None:
        self._value = value

    def get(self) -> Any:
        return self._value


@dataclass
class LastReport:
    """The actor, as the driver and the callback hold it. The driver ends it."""

    box: Any

    @staticmethod
    def create() -> LastReport:
        """Start the actor; it occupies no slot."""
        return LastReport(ray.remote(num_cpus=0, max_restarts=-1)(_Box).remote())

    def put(self, metrics: Any) -> None:
        """Keep a report; training does not end for one that is lost."""
        try:
            ray.get(self.box.put.remote(metrics), timeout=_SECONDS)
        except ray.exceptions.RayError as error:
            _logger.warning("the metrics of a report are lost: %s", error)

    def metrics(self) -> Any:
        """The last report, or None."""
        try:
            return ray.get(self.box.get.remote(), timeout=_SECONDS)
        except ray.exceptions.RayError as error:
            _logger.warning("the metrics of the last report are lost: %s", error)
            return None

    def close(self) -> None:
        """End the actor."""
        ray.kill(self.box)


@contextmanager
def remember_reports(run_config: Any, report: LastReport) -> Iterator[None]:
    """Add the callback to a RunConfig for the length of a fit."""
    try:
        from ray.train import UserCallback  # noqa: PLC0415 - Ray Train V2 alone has it
    except ImportError:
        yield
        return

    class KeepReport(UserCallback):  # type: ignore[misc]  # Ray has no types
        def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: Any) -> None:
            del run_context, checkpoint
            if metrics:
                report.put(metrics[0])

    before = run_config.callbacks
    run_config.callbacks = [*(before or ()), KeepReport()]
    try:
        yield
    finally:
        run_config.callbacks = before
