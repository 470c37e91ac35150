"""All measurements of the TensorFlow front end, as readings in a folder.

usage: python -m tensorflowbench --out FOLDER [--np N] [--quick] [--only PART ...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from benchlib.memory import MemoryCase, measure_memory
from benchlib.parameters import RESNET50
from benchlib.parts import launcher_of, parse_options, run_parts, suite_part
from benchlib.readings import save

from .budget import FULL, QUICK

_GRADIENTS_MIB: Final = 4 * RESNET50.element_count / (1 << 20)
_MEMORY: Final = MemoryCase(RESNET50.name, "tensorflowbench.memory", limit_mib=_GRADIENTS_MIB + 64)


def main() -> int:
    """Run the parts one after the other."""
    options = parse_options("tensorflowbench")
    launcher = launcher_of({"TF_CPP_MIN_LOG_LEVEL": "2"})
    budget = QUICK if options.quick else FULL

    def memory(out: Path) -> None:
        case = measure_memory(launcher, options.out, options.np, budget.memory_jobs, _MEMORY)
        save(out, "tensorflow", "memory", [case])

    suites = ("node", "sync", "training")
    parts = {name: suite_part(launcher, "tensorflowbench", name, options) for name in suites}
    parts["memory"] = memory
    return run_parts("tensorflow", parts, options)


if __name__ == "__main__":
    sys.exit(main())
