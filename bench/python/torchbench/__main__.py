"""All measurements of the PyTorch front end, as readings in a folder.

usage: python -m torchbench --out FOLDER [--np N] [--quick] [--only PART ...]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from benchlib.memory import MemoryCase, measure_memory
from benchlib.parameters import RESNET50
from benchlib.parts import Part, launcher_of, parse_options, run_parts, suite_part
from benchlib.readings import save

from .allocator import measure_allocator
from .budget import FULL, QUICK
from .start import measure_import, measure_init

_MEMORY: Final = MemoryCase(RESNET50.name, "torchbench.memory", limit_mib=64.0)


def main() -> int:
    """Run the parts one after the other."""
    options = parse_options("torchbench")
    os.environ.pop("HOROVOD_TUNE_ALLOCATOR", None)  # one part compares it, the others are without
    launcher, folder, np = launcher_of({}), options.out, options.np
    budget = QUICK if options.quick else FULL

    def start(out: Path) -> None:
        cases = [
            measure_import(launcher, folder, budget.starts),
            measure_init(launcher, folder, np, budget.starts),
        ]
        save(out, "torch", "start", cases)

    def memory(out: Path) -> None:
        save(out, "torch", "memory", [measure_memory(launcher, folder, np, budget.memory_jobs, _MEMORY)])

    def allocator(out: Path) -> None:
        save(out, "torch", "allocator", measure_allocator(launcher, folder, np, budget.allocator_jobs))

    def suite(name: str) -> Part:
        return suite_part(launcher, "torchbench", name, options)

    parts = {
        **{name: suite(name) for name in ("latency", "averaging", "exposed", "training")},
        "overhead-alone": suite_part(
            launcher, "torchbench", "overhead", options, np=1, extra={"HOROVOD_ELASTIC": "1"}
        ),
        "overhead": suite("overhead"),
        "start": start,
        "memory": memory,
        "allocator": allocator,
    }
    return run_parts("torch", parts, options)


if __name__ == "__main__":
    sys.exit(main())
