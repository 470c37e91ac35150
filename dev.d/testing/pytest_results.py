"""Reads the pytest reports of one suite, one per rank.

A test of a job counts once, and has failed if it failed on any rank. A suite that failed without saying
which test (a crash, the time limit, a rank without a report), or in which no test ran, is one failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from step import Ended, Outcome, Step

SHOWN_LINES = 25


@dataclass(slots=True)
class Case:
    """One test, over all ranks."""

    ran: bool = False
    seconds: float = 0
    failures: dict[str, str] = field(default_factory=dict)  # by report: what went wrong


def read(step: Step, ended: Ended, results: Path, ranks: int) -> Outcome:
    """Count the tests of a suite with so many ranks; 0: it was no job."""
    cases: dict[str, Case] = {}
    broken: list[str] = []
    reports = sorted(results.glob("*.xml"))
    for report in reports:
        try:
            _read_report(report, cases)
        except ET.ParseError as error:
            broken.append(f"{report.name}: {error}")
    failed = {name: case for name, case in cases.items() if case.failures}
    outcome = Outcome(
        passed=sum(case.ran and not case.failures for case in cases.values()),
        failed=len(failed),
        failures=[
            f"{name} ({', '.join(case.failures)})\n{_last_lines(next(iter(case.failures.values())))}"
            for name, case in failed.items()
        ],
        case_seconds={name: case.seconds for name, case in cases.items()},
    )
    outcome.skipped = len(cases) - outcome.passed - outcome.failed
    if len(reports) < max(ranks, 1) or broken or (ended.code != 0 and not failed) or not cases:
        outcome.failed += 1
        how = f"the time limit of {step.limit_seconds} s" if ended.timed_out else f"exit code {ended.code}"
        title = f"{results.name}: {how}, {len(reports)} of {max(ranks, 1)} reports {broken or ''}"
        outcome.failures.append(f"{title}\n{_last_lines(step.log.read_text(errors='replace'))}")
    return outcome


def _read_report(path: Path, cases: dict[str, Case]) -> None:
    for element in ET.parse(path).iter("testcase"):  # noqa: S314 - our own file
        case = cases.setdefault(f"{element.get('classname')}.{element.get('name')}", Case())
        case.seconds = max(case.seconds, float(element.get("time", 0)))
        problem = element.find("failure")
        if problem is None:
            problem = element.find("error")
        if problem is not None:
            case.failures[path.stem] = problem.text or problem.get("message") or ""
        elif element.find("skipped") is None:
            case.ran = True


def _last_lines(text: str) -> str:
    return "\n".join(f"    | {line}" for line in text.rstrip().splitlines()[-SHOWN_LINES:])
