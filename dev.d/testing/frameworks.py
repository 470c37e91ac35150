"""Frameworks and cluster engines with an environment of their own: what there is to test, found by name.

`constraints/NAME.txt` says what is in `.venv-NAME`; the folders of `tests/python/NAME` are suites. An older
release, or one for another Python (a line `# python: 3.12` in it), is `constraints/NAME-VERSION.txt`: the
same suites, in `./dev test full` or by name. It is left out, and said, where that Python is not installed;
so is one that works with older Pythons alone (`# newest python: 3.11`).

  unit      in one process
  parallel  every rank of a job runs pytest, with 3 ranks; `./dev test full`: with 1, 2 and 3
  jobs      tests that start jobs, or a cluster, and mostly wait
  estimators  the same for Spark's estimators, beside others as they have a Spark of their own
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kinds import TOOLS, pytest
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
        """Whether it is a release that is not the newest, or for another Python."""
        return self.folder != self.name

    @property
    def has_python(self) -> bool:
        """Whether there is the Python that it asks for, or one that is not too new; most ask for none."""
        text = (ROOT / f"constraints/{self.name}.txt").read_text(encoding="utf-8")
        if not re.search(r"^# (newest )?python: ", text, re.MULTILINE):
            return True
        command = [str(TOOLS / "call"), "python_of", self.name]
        return subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode == 0  # noqa: S603


def find() -> tuple[Framework, ...]:
    """Return those that have constraints. TensorFlow, in several releases, has rules of its own."""
    names = sorted(path.stem for path in ROOT.glob("constraints/*.txt"))
    found = (Framework(name) for name in names if name != "tensorflow")
    return tuple(one for one in found if one.has_python)


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
