"""All measurements of the PyTorch front end, as readings in a folder.

usage: python -m torchbench --out FOLDER [--np N] [--quick] [--only PART ...]
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .allocator import measure_allocator
from .budget import FULL, QUICK
from .launching import Launcher
from .memory import measure_memory
from .readings import save
from .start import measure_import, measure_init

_log = logging.getLogger("bench")


class _Parts:
    """Every part writes a file of readings of its own: one that fails leaves the others alone."""

    def __init__(self, launcher: Launcher, folder: Path, np: int, *, quick: bool) -> None:
        self._launcher = launcher
        self._folder = folder
        self._np = np
        self._quick = ["--quick"] if quick else []
        self._budget = QUICK if quick else FULL

    def all(self) -> Mapping[str, Callable[[Path], None]]:
        """In the order of the report."""
        return {
            "latency": self._suite("latency"),
            "averaging": self._suite("averaging"),
            "exposed": self._suite("exposed"),
            "training": self._suite("training"),
            "overhead-alone": self._suite("overhead", np=1, extra={"HOROVOD_ELASTIC": "1"}),
            "overhead": self._suite("overhead"),
            "start": self._start,
            "memory": self._memory,
            "allocator": self._allocator,
        }

    def _suite(
        self, suite: str, np: int | None = None, extra: Mapping[str, str] | None = None
    ) -> Callable[[Path], None]:
        def run(out: Path) -> None:
            arguments = [suite, *self._quick, "--out", str(out)]
            self._launcher.run_job(np or self._np, "torchbench.job", *arguments, extra=extra)

        return run

    def _start(self, out: Path) -> None:
        count = self._budget.starts
        cases = [
            measure_import(self._launcher, self._folder, count),
            measure_init(self._launcher, self._folder, self._np, count),
        ]
        save(out, "start", cases)

    def _memory(self, out: Path) -> None:
        count = self._budget.memory_jobs
        save(out, "memory", [measure_memory(self._launcher, self._folder, self._np, count)])

    def _allocator(self, out: Path) -> None:
        count = self._budget.allocator_jobs
        save(out, "allocator", measure_allocator(self._launcher, self._folder, self._np, count))


def _launcher() -> Launcher:
    python = Path(sys.executable)
    environment = {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
    }
    return Launcher(python, python.with_name("horovodrun"), {**environment})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torchbench")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--np", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    return parser.parse_args()


def main() -> int:
    """Run the parts one after the other; the exit code tells whether all succeeded."""
    options = _options()
    logging.basicConfig(format="bench: %(message)s", level=logging.INFO)
    os.environ.pop("HOROVOD_TUNE_ALLOCATOR", None)  # one part compares it, the others are without
    parts = _Parts(_launcher(), options.out, options.np, quick=options.quick).all()
    failed = []
    for number, (name, run) in enumerate(parts.items()):
        if options.only and name not in options.only:
            continue
        start = time.monotonic()
        try:
            run(options.out / f"{number:02}-{name}.json")
        except (subprocess.SubprocessError, OSError) as error:
            _log.error("torch, %s, failed: %s", name, error)
            failed.append(name)
        else:
            _log.info("torch, np=%d, %s: %.0f s", options.np, name, time.monotonic() - start)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
