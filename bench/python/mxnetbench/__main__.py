"""All measurements of the MXNet front end, as readings in a folder.

usage: python -m mxnetbench --out FOLDER [--np N] [--quick] [--only PART ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchlib.parts import launcher_of, parse_options, run_parts, suite_part
from benchlib.readings import save

from .budget import FULL, QUICK
from .imports import measure_import


def main() -> int:
    """Run the parts one after the other."""
    options = parse_options("mxnetbench")
    launcher = launcher_of({})
    budget = QUICK if options.quick else FULL

    def imports(out: Path) -> None:
        save(out, "mxnet", "import", [measure_import(budget.imports)])

    parts = {
        name: suite_part(launcher, "mxnetbench", name, options) for name in ("push", "training", "kvstore")
    }
    parts["import"] = imports
    return run_parts("mxnet", parts, options)


if __name__ == "__main__":
    sys.exit(main())
