"""How long a program waits at its start: `import horovod.torch` and hvd.init().

Each reading is a process or job of its own. Both are timed inside the process, so that neither the
interpreter nor torch nor the order in which ranks come up counts.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from benchlib.launching import Launcher
from benchlib.readings import CaseReadings, Entrant, Round

_IMPORT_LIMIT_MS: Final = 150.0
_INIT_LIMIT_MS: Final = 50.0
_PATIENCE_SECONDS: Final = 60.0


def measure_import(launcher: Launcher, folder: Path, count: int) -> CaseReadings:
    """Time the import in fresh processes that have imported torch already."""
    out = folder / "import.txt"
    rounds = []
    for _ in range(count + 1):
        launcher.run_alone("torchbench.start", "import", str(out))
        rounds.append(Round([float(out.read_text(encoding="ascii")), _IMPORT_LIMIT_MS]))
    # The first one also wrote byte code and read the disk.
    entrants = [Entrant("horovod.torch", "ours"), Entrant("figure", "limit")]
    return CaseReadings("start: import beyond torch", "ms", 1, entrants, rounds[1:])


def measure_init(launcher: Launcher, folder: Path, np: int, count: int) -> CaseReadings:
    """Time hvd.init() in fresh jobs; the slowest rank counts."""
    rounds = []
    for index in range(count):
        place = folder / f"init-{index}"
        place.mkdir()
        launcher.run_job(np, "torchbench.start", "init", str(place))
        slowest = max(float(path.read_text(encoding="ascii")) for path in place.glob("took-*"))
        rounds.append(Round([slowest, _INIT_LIMIT_MS]))
    entrants = [Entrant("hvd.init", "ours"), Entrant("figure", "limit")]
    return CaseReadings(f"np={np} start: init", "ms", np, entrants, rounds)


# ---- inside the process that is timed


def _time_import(out: Path) -> None:
    import torch  # noqa: F401, PLC0415 - timed apart

    start = time.perf_counter()
    import horovod.torch  # noqa: F401, PLC0415 - what is timed

    out.write_text(f"{1e3 * (time.perf_counter() - start)}", encoding="ascii")


def _time_init(place: Path) -> None:
    import horovod.torch as hvd  # noqa: PLC0415 - timed apart

    rank, size = os.environ["HOROVOD_RANK"], int(os.environ["HOROVOD_SIZE"])
    (place / f"here-{rank}").touch()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while len(list(place.glob("here-*"))) < size:  # spins: nobody may come late for having slept
        if time.monotonic() > deadline:
            message = f"rank {rank}: {size} ranks expected in {place} within {_PATIENCE_SECONDS} s"
            raise TimeoutError(message)
    start = time.perf_counter()
    hvd.init()
    took = time.perf_counter() - start
    (place / f"took-{rank}").write_text(f"{1e3 * took}", encoding="ascii")
    hvd.shutdown()


def main(what: str, path: str) -> None:
    """Time one start."""
    (_time_import if what == "import" else _time_init)(Path(path))


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
