"""How long `import horovod.jax` takes in a process that has imported JAX and numpy already."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from benchlib.launching import Launcher
from benchlib.readings import CaseReadings, Entrant, Round

_LIMIT_MS: Final = 150.0


def measure_import(launcher: Launcher, folder: Path, count: int) -> CaseReadings:
    """Time the import in fresh processes; the first one also wrote byte code and read the disk."""
    out = folder / "import.txt"
    rounds = []
    for _ in range(count + 1):
        launcher.run_alone("jaxbench.start", str(out))
        rounds.append(Round([float(out.read_text(encoding="ascii")), _LIMIT_MS]))
    entrants = [Entrant("horovod.jax", "ours"), Entrant("figure", "limit")]
    return CaseReadings("start: import beyond jax", "ms", 1, entrants, rounds[1:])


def main(path: str) -> None:
    """Time one import."""
    import jax.numpy  # noqa: F401, PLC0415 - timed apart

    start = time.perf_counter()
    import horovod.jax  # noqa: F401, PLC0415 - what is timed

    Path(path).write_text(f"{1e3 * (time.perf_counter() - start)}", encoding="ascii")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
