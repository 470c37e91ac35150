"""Runs the programs of one seed after the other, and reports those that fail, with a smaller one for each."""

from __future__ import annotations

import ctypes.util
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from faults import Fault
from generator import generate
from listing import listing
from outcome import Outcome, describe
from profiles import Limits
from program import Program, to_json
from ranks import Patience, run_program
from shrinking import shrink

_ROOT = Path(__file__).parents[3]
_SECOND_FAILURE_RUNS = 30
"""So often a program that failed is run again to see how often it does."""
_MOST_REPEATS = 40
_WHILE_SHRINKING = Patience(stall_seconds=2, stall_limit_seconds=4, limit_seconds=15)


ONE_HOST = Limits()
TWO_HOSTS = Limits(two_hosts=True, tls=ctypes.util.find_library("ssl") is not None)


@dataclass(frozen=True)
class Finding:
    """A program that failed, and the smallest one found that fails in the same way."""

    program: Program
    outcome: Outcome
    smallest: Program
    smallest_outcome: Outcome
    repeats: int
    """Runs within which it is expected to fail once."""
    report: str


@dataclass(frozen=True)
class Result:
    """What came of a hunt."""

    runs: int
    findings: tuple[Finding, ...]
    statistics: Counter[str]
    """Of the core, of all ranks and runs together."""


def hunt(
    seeds: Iterable[int],
    limits: Limits,
    folder: Path,
    *,
    seconds: float,
    shrink_seconds: float,
    most_findings: int = 1,
) -> Result:
    """Run seeds until the time is over; stop at so many failures."""
    deadline = time.monotonic() + seconds
    findings: list[Finding] = []
    runs = 0
    statistics: Counter[str] = Counter()
    for seed in seeds:
        if time.monotonic() > deadline or len(findings) >= most_findings:
            break
        program = generate(seed, limits)
        outcome = run_program(program, folder / "runs")
        runs += 1
        for end in outcome.ends:
            statistics.update(end.statistics)
        if outcome.failed():
            findings.append(investigate(program, outcome, folder, shrink_seconds))
    return Result(runs, tuple(findings), statistics)


def investigate(
    program: Program,
    outcome: Outcome,
    folder: Path,
    seconds: float,
    fault: Fault | None = None,
    patience: Patience = _WHILE_SHRINKING,
) -> Finding:
    """Find out how often a failure comes, look for a small program that has it, and write both down."""
    deadline = time.monotonic() + seconds
    last = outcome

    def fails_within(runs: int, candidate: Program) -> int | None:
        """Number of the first run that fails in the same way; None: none does."""
        nonlocal last
        for run in range(1, runs + 1):
            tried = run_program(candidate, folder / "runs", patience, fault)
            if tried.category() == outcome.category():
                last = tried
                return run
            if time.monotonic() > deadline:
                break
        return None

    smallest = program
    again = fails_within(_SECOND_FAILURE_RUNS, program)
    repeats = None if again is None else min(1 if again == 1 else 2 * again, _MOST_REPEATS)
    if repeats is not None:

        def fails(candidate: Program) -> bool:
            return fails_within(repeats, candidate) is not None

        smallest = shrink(program, outcome.places(), fails, lambda: time.monotonic() > deadline)
    kept = folder / f"seed-{program.seed}.json"
    kept.write_text(to_json(smallest) + "\n")
    report = _report(program, outcome, smallest, last, repeats, kept)
    return Finding(program, outcome, smallest, last, repeats or 0, report)


def _report(
    program: Program, outcome: Outcome, smallest: Program, last: Outcome, repeats: int | None, kept: Path
) -> str:
    hosts = " --two-hosts" if len(program.hosts) > 1 else ""
    replay = f"{shlex.quote(sys.executable)} {Path(__file__).with_name('replay.py').relative_to(_ROOT)}"
    settings = " ".join(f"{name}={value}" for name, value in program.settings)
    size = f"{program.size} ranks, {len(program.operations)} operations"
    lines = [
        f"the program of seed {program.seed} failed: {size}, {settings or 'no settings'}",
        f"again: {replay} {program.seed}{hosts} --times {repeats or _MOST_REPEATS}",
        describe(program, outcome),
    ]
    if repeats is None:
        lines.append("It did not fail again, so there is no smaller program.")
    else:
        lines += [
            f"the smallest program found that fails so, within {repeats} runs or so:",
            f"again: {replay} {kept} --times {repeats}",
            listing(smallest),
            describe(smallest, last),
        ]
    return "\n".join(lines)
