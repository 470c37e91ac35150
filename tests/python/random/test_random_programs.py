"""Random programs with real processes. The time that each test takes is given by HVD_RANDOM_SECONDS.

HVD_RANDOM_SEED is the first seed of the long test, which is another one every time otherwise.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from random import SystemRandom

import pytest
from hunt import ONE_HOST, TWO_HOSTS, Result, hunt
from profiles import Limits

GIVEN_SECONDS = os.environ.get("HVD_RANDOM_SECONDS")
KEPT = Path(__file__).parents[3] / "build" / "random-programs"
PATHS = (
    "agreed_in_lockstep",
    "agreed_by_log",
    "cache_hits",
    "cache_misses",
    "cache_evictions",
    "small_operations",
)
PATHS_OF_ONE_HOST = ("streamed_operations", "shared_operations", "background_runs")


def fail_with_reports(result: Result) -> None:
    reports = [finding.report for finding in result.findings]
    if reports:
        pytest.fail("\n\n".join([*reports, f"{result.runs} programs were run"]), pytrace=False)


@pytest.mark.parametrize(
    ("limits", "seconds", "paths"),
    [(ONE_HOST, 25, PATHS + PATHS_OF_ONE_HOST), (TWO_HOSTS, 15, PATHS)],
    ids=["one host", "two hosts"],
)
def test_programs_do_what_they_should(limits: Limits, seconds: float, paths: tuple[str, ...]) -> None:
    seconds = float(GIVEN_SECONDS or seconds)

    result = hunt(itertools.count(), limits, KEPT, seconds=seconds, shrink_seconds=90)

    fail_with_reports(result)
    if result.runs >= 20:
        assert [path for path in paths if not result.statistics[path]] == []


@pytest.mark.soak
@pytest.mark.parametrize("limits", [ONE_HOST, TWO_HOSTS], ids=["one host", "two hosts"])
def test_programs_of_new_seeds_do_what_they_should(limits: Limits) -> None:
    first = int(os.environ.get("HVD_RANDOM_SEED") or SystemRandom().getrandbits(31))

    result = hunt(
        itertools.count(first),
        limits,
        KEPT,
        seconds=float(GIVEN_SECONDS or 1800),
        shrink_seconds=300,
        most_findings=5,
    )

    fail_with_reports(result)
