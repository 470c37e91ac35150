"""Runs one program again, by its seed or from the file that a failure left.

python tests/python/random/replay.py 17 --times 20 --shrink 120
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process that forks has one thread

from faults import Fault
from generator import generate
from hunt import ONE_HOST, TWO_HOSTS, investigate
from listing import listing
from outcome import describe
from program import Kind, Program, from_json
from ranks import run_program


def main() -> int:
    """Return the exit code: 1 if a run failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", help="a seed, or a file with a program")
    parser.add_argument("--two-hosts", action="store_true", help="of a seed: the ranks are on two hosts")
    parser.add_argument("--times", type=int, default=1, help="run it so often, or until it fails")
    parser.add_argument("--list", action="store_true", help="print the program, and do not run it")
    parser.add_argument("--shrink", type=float, metavar="SECONDS", help="look for a smaller one that fails")
    parser.add_argument("--fault", nargs=2, metavar=("WHAT", "KIND"), help="plant one: see faults.py")
    arguments = parser.parse_args()
    program = _program(arguments.program, arguments.two_hosts)
    if arguments.list:
        print(listing(program))
        return 0
    fault = Fault(arguments.fault[0], Kind(arguments.fault[1])) if arguments.fault else None
    with tempfile.TemporaryDirectory(prefix="hvd-random-") as temporary:
        folder = Path(temporary)
        for run in range(arguments.times):
            outcome = run_program(program, folder / "runs", fault=fault)
            if outcome.failed():
                print(f"run {run + 1} of {arguments.times}")
                if arguments.shrink:
                    print(investigate(program, outcome, Path.cwd(), arguments.shrink, fault).report)
                else:
                    print(describe(program, outcome))
                return 1
    print(f"{arguments.times} runs without a failure")
    return 0


def _program(text: str, two_hosts: bool) -> Program:
    if text.isdecimal():
        return generate(int(text), TWO_HOSTS if two_hosts else ONE_HOST)
    return from_json(Path(text).read_text())


if __name__ == "__main__":
    raise SystemExit(main())
