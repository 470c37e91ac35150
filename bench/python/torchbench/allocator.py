"""What HOROVOD_TUNE_ALLOCATOR=1 gains: the same training in jobs with and without it, in turn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchlib.readings import CaseReadings, Entrant, Round

if TYPE_CHECKING:
    from benchlib.launching import Launcher
    from benchlib.world import World

_VARIABLE: Final = "HOROVOD_TUNE_ALLOCATOR"
_WARM_UP_STEPS: Final = 5
_STEPS: Final = 25


def measure_allocator(launcher: Launcher, folder: Path, np: int, count: int) -> list[CaseReadings]:
    """Compare pairs of jobs; no goal, as the gain is the C library's."""
    rounds: dict[str, list[Round]] = {}
    for index in range(count):
        took = {}
        for setting in ("0", "1"):
            out = folder / f"allocator-{index}-{setting}.json"
            launcher.run_job(np, "torchbench.allocator", str(out), extra={_VARIABLE: setting})
            took[setting] = json.loads(out.read_text(encoding="ascii"))
        for name, tuned_ms in took["1"].items():
            rounds.setdefault(name, []).append(Round([tuned_ms, took["0"][name]]))
    entrants = [Entrant("tuned allocator", "ours"), Entrant("default allocator", "peer")]
    return [
        CaseReadings(f"np={np} allocator: {name}", "ms", np, entrants, readings)
        for name, readings in rounds.items()
    ]


# ---- inside the job that is measured


def _median_step_ms(world: World, step: Callable[[], None]) -> float:
    for _ in range(_WARM_UP_STEPS):
        step()
    times = []
    for _ in range(_STEPS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return 1e3 * world.largest(sorted(times)[_STEPS // 2])


def main(out: str) -> None:
    """Train two models with Horovod and write down what a step takes."""
    import torch  # noqa: PLC0415 - the other side of this module must start quickly
    from benchlib.world import World  # noqa: PLC0415

    import horovod.torch as hvd  # noqa: PLC0415

    from .problems import cnn, mlp  # noqa: PLC0415
    from .ways import Horovod, adam  # noqa: PLC0415

    torch.set_num_threads(1)
    hvd.init()
    world = World()
    steps = {
        "CNN": Horovod(cnn(world.rank)).step,
        "MLP with Adam": Horovod(mlp(world.rank), adam).step,
    }
    took = {name: _median_step_ms(world, step) for name, step in steps.items()}
    if world.is_first:
        Path(out).write_text(json.dumps(took), encoding="ascii")
    hvd.shutdown()


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
