"""The kinds of steps that the plan is made of: installations, builds, runs of ctest and of pytest."""

from __future__ import annotations

import os
from functools import partial

import check_results
import ctest_results
import pytest_results
from step import ROOT, Step

TOOLS = ROOT / "dev.d/testing"
RESULTS = ROOT / "build/results"
CORES = len(os.sched_getaffinity(0))


def install(what: str, group: str, **environment: str) -> Step:
    """Fill an environment of Python, as ./dev setup does."""
    environment["DEV_PLAIN"] = "1"
    return Step(f"install {what}", (str(ROOT / "dev.d/setup"), group), environment=environment, cores=1)


def build(name: str, preset: str, *targets: str, needs: tuple[str, ...] = ()) -> Step:
    """Compile a preset, or only some targets of it."""
    command = (str(TOOLS / "call"), "configure_and_build", preset, *targets)
    return Step(f"build {name}", command, needs, is_build=True)


def package(venv: str, *needs: str) -> Step:
    """Install the package into an environment; its objects come from the release build, through ccache."""
    command = (str(TOOLS / "call"), "install_package", str(ROOT / venv))
    return Step(f"package {venv}", command, needs, is_build=True)


def check(*needs: str) -> Step:
    """Look for what differs from the style guide: mostly a compilation, by clang."""
    command = (str(ROOT / "dev.d/check"), "--quick")
    return Step("test check", command, needs, is_build=True, read=check_results.read)


def ctest(
    name: str,
    labels: str,
    *,
    preset: str,
    needs: tuple[str, ...],
    without: str = "soak",
    pattern: str = "",
    cores: float = CORES,
    is_alone: bool = False,
    limit_seconds: int = 4 * 3600,
    **environment: str,
) -> Step:
    """Run the suites of a build that have one of the labels, and none of those of `without`."""
    results = RESULTS / name
    choice = ["-L", f"^({labels})$"]
    if without:
        choice += ["-LE", f"^({without})$"]
    if pattern:
        choice += ["-R", pattern]
    return Step(
        f"test {name}",
        (str(TOOLS / "run-ctest"), preset, str(results), *choice),
        needs,
        cores=cores,
        is_alone=is_alone,
        limit_seconds=limit_seconds,  # each suite has a limit of its own
        environment=environment,
        read=partial(ctest_results.read, results=results, title=name, may_be_empty=bool(pattern)),
    )


def pytest(
    name: str,
    folder: str,
    *needs: str,
    venv: str = ".venv",
    ranks: int = 0,
    marks: str = "not soak",
    arguments: tuple[str, ...] = (),
    cores: float = 1,
    limit_seconds: int = 1800,
    **environment: str,
) -> Step:
    """Run a folder of tests in a job of so many ranks; 0: in a plain process, which may start jobs itself."""
    results = RESULTS / name
    choice = [*(["-m", marks] if marks else []), *arguments, f"tests/python/{folder}"]
    return Step(
        f"test {name}",
        (str(TOOLS / "run-pytest"), str(ROOT / venv), str(results), str(ranks), *choice),
        (f"package {venv}", *needs),
        cores=cores,
        limit_seconds=limit_seconds,
        environment=environment,
        read=partial(pytest_results.read, results=results, ranks=ranks),
    )
