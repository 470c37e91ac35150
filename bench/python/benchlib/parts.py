"""The parts of a benchmark, one after the other, as readings in a folder."""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .launching import Launcher

_log = logging.getLogger("bench")

Part = Callable[[Path], None]
"""Writes a file of readings of its own: one that fails leaves the others alone."""


@dataclass(frozen=True, slots=True)
class Options:
    """Of the command line: --out FOLDER [--np N] [--quick] [--only PART ...]."""

    out: Path
    np: int
    quick: bool
    only: list[str]


def parse_options(program: str) -> Options:
    """Read the command line."""
    logging.basicConfig(format="bench: %(message)s", level=logging.INFO)
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--np", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", default=[])
    return Options(**vars(parser.parse_args()))


def launcher_of(environment: Mapping[str, str]) -> Launcher:
    """Start processes with this interpreter, that find the benchmarks and compute with one thread."""
    python = Path(sys.executable)
    everywhere = {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONPATH": str(Path(__file__).resolve().parent.parent),
    }
    return Launcher(python, python.with_name("horovodrun"), {**everywhere, **environment})


def suite_part(
    launcher: Launcher,
    program: str,
    suite: str,
    options: Options,
    *,
    np: int | None = None,
    extra: Mapping[str, str] | None = None,
) -> Part:
    """Run one suite as a job of PROGRAM.job."""

    def run(out: Path) -> None:
        quick = ["--quick"] if options.quick else []
        launcher.run_job(np or options.np, f"{program}.job", suite, *quick, "--out", str(out), extra=extra)

    return run


def run_parts(bench: str, parts: Mapping[str, Part], options: Options) -> int:
    """Run the parts in the order of the report; the exit code tells whether all succeeded."""
    failed = []
    for number, (name, run) in enumerate(parts.items()):
        if options.only and name not in options.only:
            continue
        start = time.monotonic()
        try:
            run(options.out / f"{number:02}-{name}.json")
        except (subprocess.SubprocessError, OSError) as error:
            _log.error("%s, %s, failed: %s", bench, name, error)
            failed.append(name)
        else:
            _log.info("%s, np=%d, %s: %.0f s", bench, options.np, name, time.monotonic() - start)
    return 1 if failed else 0
