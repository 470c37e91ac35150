"""All measurements of the JAX front end, as readings in a folder.

usage: python -m jaxbench --out FOLDER [--np N] [--quick] [--only PART ...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from benchlib.parts import launcher_of, parse_options, run_parts, suite_part
from benchlib.readings import save

from .budget import FULL, QUICK
from .start import measure_import

_ENVIRONMENT: Final = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def main() -> int:
    """Run the parts one after the other."""
    options = parse_options("jaxbench")
    launcher = launcher_of(_ENVIRONMENT)
    budget = QUICK if options.quick else FULL

    def start(out: Path) -> None:
        save(out, "jax", "start", [measure_import(launcher, options.out, budget.imports)])

    suites = ("calls", "averaging", "training")
    parts = {name: suite_part(launcher, "jaxbench", name, options) for name in suites}
    parts["start"] = start
    return run_parts("jax", parts, options)


if __name__ == "__main__":
    sys.exit(main())
