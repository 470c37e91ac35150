"""From warm actors to hvd.init() done on all of them."""

from __future__ import annotations

import statistics
import time

from horovod.ray import RayExecutor


def _load() -> None:
    import horovod.torch  # noqa: F401, PLC0415 - loaded before the clock runs


def _init() -> None:
    import horovod.torch as hvd  # noqa: PLC0415

    hvd.init()


def _shutdown() -> None:
    import horovod.torch as hvd  # noqa: PLC0415

    hvd.shutdown()


def measure(workers: int, rounds: int) -> dict[str, float]:
    """Return the median and the least seconds of a start: both rounds through Ray, and init."""
    settings = RayExecutor.create_settings(timeout_s=120, placement_group_timeout_s=120)
    executor = RayExecutor(settings, num_workers=workers, cpus_per_worker=1)
    executor.start()
    try:
        executor.run(_load)
        seconds = []
        for _ in range(rounds):
            start = time.perf_counter()
            executor.adapter._enter()  # noqa: SLF001 - what start() does with actors that are there
            executor.run(_init)
            seconds.append(time.perf_counter() - start)
            executor.run(_shutdown)
    finally:
        executor.shutdown()
    return {"median_s": statistics.median(seconds), "least_s": min(seconds)}
