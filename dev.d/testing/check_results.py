"""Reads what ./dev check printed: a line per part, "ok" or "FAILED"."""

from __future__ import annotations

import re

from step import Ended, Outcome, Step

PART = re.compile(r"^  (\w+) +(ok|FAILED) ", re.MULTILINE)
SHOWN_LINES = 40


def read(step: Step, ended: Ended) -> Outcome:
    """Count the parts. One that does not end well in any other way is a failure, too."""
    log = step.log.read_text(errors="replace")
    parts = PART.findall(log)
    outcome = Outcome(passed=sum(how == "ok" for _, how in parts))
    outcome.failed = len(parts) - outcome.passed
    if ended.code != 0 or not parts:
        outcome.failed = max(outcome.failed, 1)
    if outcome.failed:
        shown = "\n".join(f"    | {line}" for line in log.rstrip().splitlines()[-SHOWN_LINES:])
        outcome.failures.append(f"check: exit code {ended.code}\n{shown}")
    return outcome
