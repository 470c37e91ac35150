"""All measurements of the TensorFlow front end, as readings in a folder.

usage: python -m tensorflowbench --out FOLDER [--np N] [--quick] [--only PART ...]
"""

from __future__ import annotations

import sys

from benchlib.parts import launcher_of, parse_options, run_parts, suite_part


def main() -> int:
    """Run the parts one after the other."""
    options = parse_options("tensorflowbench")
    launcher = launcher_of({"TF_CPP_MIN_LOG_LEVEL": "2"})
    parts = {name: suite_part(launcher, "tensorflowbench", name, options) for name in ("node",)}
    return run_parts("tensorflow", parts, options)


if __name__ == "__main__":
    sys.exit(main())
