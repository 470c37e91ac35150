"""Reads what one ctest run left: ctest.xml says how each entry ended, ENTRY.xml how its single tests did.

ENTRY.said is what a program wants to be shown also when all is well. An entry that failed without saying
which test (a crash, its time limit, a leak at exit) is one failure. Each failure is shown with the end of
its output: between "[ RUN" and "[  FAILED" of GoogleTest, up to where it stopped for a test that never
ended, and the end of the output of other programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from step import Ended, Outcome, Step

# A sanitizer says what first, and a long stack after it; a test says it last.
FIRST_LINES, LAST_LINES = 12, 18


def read(step: Step, ended: Ended, results: Path, title: str, *, may_be_empty: bool) -> Outcome:
    """Count the tests of all entries; `title` is put before the names of those that failed."""
    outcome = Outcome()
    log = step.log.read_text(errors="replace")
    report = results / "ctest.xml"
    if not report.exists():  # ctest writes none if no entry matches
        if may_be_empty and "No tests were found" in log:
            return Outcome(note="no suite matches")
        return _broken(title, f"ctest exit code {ended.code}", log)
    try:
        entries = list(ET.parse(report).iter("testcase"))  # noqa: S314 - our own file
    except ET.ParseError as error:
        return _broken(title, f"ctest.xml: {error}", log)
    reasons = dict(_reasons(log))
    outcome.remarks = [path.read_text().strip() for path in sorted(results.glob("*.said"))]
    for entry in entries:
        name, status = entry.get("name", ""), entry.get("status", "")
        bad = _count(entry, results / f"{name.replace('/', '-')}.xml", outcome)
        if status in {"fail", "notrun"}:
            outcome.failed += 0 if bad else 1
            output = (entry.findtext("system-out") or "").splitlines()
            outcome.failures += (f"{title} {text}" for text in _failures(name, reasons.get(name, ""), output))
    if ended.timed_out:
        outcome.failed += 1
        outcome.failures.append(_shown(f"{title} the time limit of {step.limit_seconds} s", log.splitlines()))
    return outcome


def _broken(title: str, what: str, log: str) -> Outcome:
    return Outcome(failed=1, failures=[_shown(f"{title} {what}", log.splitlines())])


def _count(entry: ET.Element, report: Path, outcome: Outcome) -> int:
    """Add the tests of one entry, and return how many of them failed."""
    try:
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - our own file
    except (FileNotFoundError, ET.ParseError):  # no GoogleTest, or it did not live to write it
        outcome.case_seconds[entry.get("name", "")] = float(entry.get("time", 0))
        outcome.passed += entry.get("status") == "run"
        outcome.skipped += entry.get("status") == "disabled"
        return 0
    bad = 0
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            bad += 1
        elif case.get("result", "completed") == "completed" and case.get("status") != "notrun":
            outcome.passed += 1
        else:
            outcome.skipped += 1
        outcome.case_seconds[f"{case.get('classname')}.{case.get('name')}"] = float(case.get("time", 0))
    outcome.failed += bad
    return bad


def _reasons(log: str) -> Iterator[tuple[str, str]]:
    """Entries that ended in another way than with a failed test; the log of ctest alone says how."""
    # "3/9 Test #3: name ....***Timeout   2.02 sec", "***Exception: SegFault  0.1 sec", "***Failed"
    for name, why in re.findall(r"Test +#\d+: (\S+) .*?\*\*\*(.*?) +[\d.]+ sec", log):
        if why != "Failed":
            yield name, f", {why}"


def _failures(entry: str, reason: str, output: list[str]) -> Iterator[str]:
    begin, test, shown = None, "", False
    for number, line in enumerate(output):
        if line.startswith("[ RUN      ]"):
            begin, test = number, line[13:]
        elif begin is not None and line.startswith(("[       OK ]", "[  SKIPPED ]")):
            begin = None
        elif begin is not None and line.startswith("[  FAILED  ]"):
            yield _shown(test, output[begin : number + 1])
            begin, shown = None, True
    if begin is not None:
        yield _shown(f"{test} (did not end{reason}; {entry})", output[begin:])
    elif not shown:
        yield _shown(f"{entry}{reason}", output)


def _shown(title: str, lines: list[str]) -> str:
    if len(lines) > FIRST_LINES + LAST_LINES:
        lines = [*lines[:FIRST_LINES], "...", *lines[-LAST_LINES:]]
    return "\n".join([title, *(f"    | {line}" for line in lines)])
