"""HorovodRunner: the interface of the managed product, on `horovod.spark.run` and `horovod.run`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ._launch import launch, start_seconds_of

_VERBOSITIES = ("all", "log_callback_only")


class HorovodRunner:
    """Runs a function as a job, and returns what rank 0 returned.

    `np` > 0: so many ranks as barrier tasks of Spark. `np` < 0: -np processes on this host, without
    Spark. 0: as many ranks as Spark has slots; deprecated, say how many. `driver_log_verbosity`:
    "log_callback_only" shows what `log_to_driver` says, "all" also what ranks print; the logs of the
    executors have the rest.
    """

    def __init__(self, *, np: int, driver_log_verbosity: str = "log_callback_only") -> None:
        """Keep how to run; nothing starts yet."""
        if isinstance(np, bool) or not isinstance(np, int):
            message = f"np must be an integer, got {type(np).__name__} {np!r}"
            raise TypeError(message)
        if driver_log_verbosity not in _VERBOSITIES:
            message = f"driver_log_verbosity must be one of {_VERBOSITIES}, got {driver_log_verbosity!r}"
            raise ValueError(message)
        if np == 0:
            warnings.warn("np=0 is deprecated: say how many ranks", DeprecationWarning, stacklevel=2)
        self.num_processor = np
        self.driver_log_verbosity = driver_log_verbosity

    def run(self, main: Callable[..., Any], **kwargs: Any) -> Any:
        """Call main(**kwargs) on every rank; the result of rank 0. Both travel with cloudpickle."""
        if self.num_processor < 0:
            import horovod  # noqa: PLC0415 - the launcher, which a job of Spark does not need

            return horovod.run(main, kwargs=kwargs, num_proc=-self.num_processor)[0]
        return launch(
            main,
            (),
            kwargs,
            num_proc=self.num_processor or None,
            start_seconds=start_seconds_of(None),
            env={},
            shows_output=self.driver_log_verbosity == "all",
        )[0]
