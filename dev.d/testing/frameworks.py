"""Frameworks and cluster engines with an environment of their own: what there is to test, found by name.

`constraints-NAME.txt` says what is in `.venv-NAME`; the folders of `tests/python/NAME` are suites. An older
release is `constraints-NAME-VERSION.txt`: the same suites, in `./dev test full` or by name.

  unit      in one process
  parallel  every rank of a job runs pytest, with 3 ranks; `./dev test full`: with 1, 2 and 3
  jobs      tests that start jobs, or a cluster, and mostly wait
  estimators  the same for Spark's estimators, beside others as they have a Spark of their own
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kinds import pytest
from step import ROOT, Step

RANKS, ALL_RANKS = (3,), (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Framework:
    """One of them."""

    name: str

    @property
    def venv(self) -> str:
        """Its environment."""
        return f".venv-{self.name}"

    @property
    def tests(self) -> Path:
        """The folder of its suites."""
        return ROOT / "tests/python" / self.folder

    @property
    def folder(self) -> str:
        """Its name without the version of an older release."""
        return self.name.split("-")[0]

    @property
    def is_older(self) -> bool:
        """Whether it is a release that is not the newest."""
        return self.folder != self.name


def find() -> tuple[Framework, ...]:
    """Return those that have constraints. TensorFlow, in several releases, has rules of its own."""
    names = sorted(path.stem.removeprefix("constraints-") for path in ROOT.glob("constraints-*.txt"))
    return tuple(Framework(name) for name in names if name != "tensorflow")


def suites(one: Framework, marks: str, *, is_full: bool) -> list[Step]:
    """Return the suites of a framework."""
    suite = partial(pytest, venv=one.venv, marks=marks)
    steps: list[Step] = []
    if (one.tests / "jobs").is_dir():
        steps.append(suite(f"python.{one.name}.jobs", f"{one.folder}/jobs", cores=0.5))
    if (one.tests / "estimators").is_dir():
        steps.append(suite(f"python.{one.name}.estimators", f"{one.folder}/estimators", cores=1))
    if (one.tests / "parallel").is_dir():
        steps += [
            suite(f"python.{one.name}.parallel.np{n}", f"{one.folder}/parallel", ranks=n, cores=1.5)
            for n in (ALL_RANKS if is_full else RANKS)
        ]
    if (one.tests / "unit").is_dir():
        steps.append(suite(f"python.{one.name}.unit", f"{one.folder}/unit"))
    return steps
