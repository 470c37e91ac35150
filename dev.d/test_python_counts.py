"""Counts the pytest reports of one suite: RESULTS_DIR EXIT_CODE RANKS LOG FAILURES_FILE.

Prints "passed failed skipped". A test of a job counts once, and has failed if it failed on any rank. A
suite that failed without saying which test (a crash, the time limit, a rank without a report) is one
failure. What failed, with its last lines, goes to FAILURES_FILE.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

SHOWN_LINES = 25


@dataclass(slots=True)
class Case:
    """One test, over all ranks."""

    ran: bool = False
    failures: dict[str, str] = field(default_factory=dict)  # by report: what went wrong


def read_report(path: Path, cases: dict[str, Case]) -> None:
    """Add what one rank reports."""
    for element in ET.parse(path).iter("testcase"):  # noqa: S314 - our own file
        case = cases.setdefault(f"{element.get('classname')}.{element.get('name')}", Case())
        problem = element.find("failure")
        if problem is None:
            problem = element.find("error")
        if problem is not None:
            case.failures[path.stem] = problem.text or problem.get("message") or ""
        elif element.find("skipped") is None:
            case.ran = True


def last_lines(text: str) -> str:
    """The end of a text, indented like the failures of other suites."""
    return "\n".join(f"    | {line}" for line in text.rstrip().splitlines()[-SHOWN_LINES:])


def main(results: Path, exit_code: int, ranks: int, log: Path, failures_file: Path) -> None:
    """Read all reports, print the counts, describe the failures."""
    cases: dict[str, Case] = {}
    broken: list[str] = []
    reports = sorted(results.glob("*.xml"))
    for report in reports:
        try:
            read_report(report, cases)
        except ET.ParseError as error:
            broken.append(f"{report.name}: {error}")
    failed = {name: case for name, case in cases.items() if case.failures}
    passed = sum(case.ran and not case.failures for case in cases.values())
    failure_count = len(failed)
    texts = [
        f"\n  FAILED {name} ({', '.join(case.failures)})\n{last_lines(next(iter(case.failures.values())))}"
        for name, case in failed.items()
    ]
    missing = len(reports) < max(ranks, 1) or bool(broken)
    if missing or (exit_code != 0 and not failed) or not cases:
        failure_count += 1
        count = f"{len(reports)} of {max(ranks, 1)} reports"
        title = f"{results.name}: exit code {exit_code}, {count} {broken or ''}"
        texts.append(f"\n  FAILED {title}\n{last_lines(log.read_text(errors='replace'))}")
    failures_file.write_text("\n".join(texts) + "\n")
    sys.stdout.write(f"{passed} {failure_count} {len(cases) - passed - len(failed)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5]))
