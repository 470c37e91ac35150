"""A rank of a job that runs one suite: python -m mxnetbench.job SUITE [--quick] --out FILE."""

from __future__ import annotations

import argparse
import importlib
import logging
from collections.abc import Callable
from pathlib import Path

from benchlib.effort import Effort
from benchlib.readings import CaseReadings, save
from benchlib.world import World

import horovod.mxnet as hvd

from .budget import FULL, QUICK

SUITES = ("push", "training", "kvstore")


def main() -> None:
    """Measure; rank 0 writes the readings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    logging.basicConfig(format="bench: %(message)s", level=logging.WARNING)
    hvd.init()
    world = World()
    suite = importlib.import_module(f"mxnetbench.suite_{options.suite}")
    measure: Callable[[World, Effort], list[CaseReadings]] = suite.measure
    cases = measure(world, getattr(QUICK if options.quick else FULL, options.suite))
    if world.is_first:
        save(options.out, "mxnet", options.suite, cases)
    hvd.shutdown()


if __name__ == "__main__":
    main()
