"""A rank of a job that runs one suite: python -m devicesbench.job SUITE [--quick] --out FILE."""

from __future__ import annotations

import argparse
from pathlib import Path

from .budget import QUICK_ROUNDS, ROUNDS

SUITES = ("submission", "step", "overlap", "staging", "absence")


def main() -> None:
    """Measure; rank 0 writes the readings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rounds = QUICK_ROUNDS if options.quick else ROUNDS

    # The stand-in has to be there before torch, and is not wanted where the figure is about its absence.
    if options.suite == "absence":
        from .absence import measure_absence  # noqa: PLC0415

        cases = measure_absence()
    else:
        import torch_cuda  # noqa: PLC0415

        driver = torch_cuda.use()
        from . import measures  # noqa: PLC0415

        cases = getattr(measures, f"measure_{options.suite}")(driver, rounds)

    from benchlib.readings import save  # noqa: PLC0415

    from horovod._core import _native  # noqa: PLC0415

    if _native.rank() == 0:
        save(options.out, "devices", options.suite, cases)
    _native.shutdown()


if __name__ == "__main__":
    main()
