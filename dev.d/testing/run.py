"""./dev test: run.py MODE PATTERN. Runs the plan, prints a line per step, and at the end what failed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

import schedule
from kinds import TOOLS
from plan import Run, make_run, preparations, suites
from step import LOGS, ROOT, Ended, Outcome, Step

SHOWN = 20
LEAST_SECONDS = 1  # of what is shown


def say(text: str) -> None:
    """Print a line, also where the output is no terminal."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def span(seconds: float) -> str:
    """A time as people read it."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"


def steps_of(run: Run) -> list[Step]:
    """Return the suites that were asked for, behind what they need."""
    known = {step.name: step for step in preparations(run)}
    # The entries of ctest are known only when they are built.
    wanted = [
        suite
        for suite in suites(run)
        if not run.pattern or "run-ctest" in suite.command[0] or re.search(run.pattern, suite.name)
    ]
    needed = set[str]()
    ahead = [need for suite in wanted for need in suite.needs]
    while ahead:
        if (name := ahead.pop()) not in needed:
            needed.add(name)
            ahead += known[name].needs
    return [*(step for name, step in known.items() if name in needed), *wanted]


@dataclass(slots=True)
class Account:
    """What has come out so far."""

    total: Outcome = field(default_factory=Outcome)
    failed_steps: list[str] = field(default_factory=list)
    times: list[tuple[Step, Ended]] = field(default_factory=list)

    def add(self, step: Step, ended: Ended) -> bool:
        """Print and keep how a step ended; returns whether what needs it can run."""
        self.times.append((step, ended))
        if step.read is None:
            return self._add_plain(step, ended)
        outcome = step.read(step, ended)
        counts = outcome.note or f"{outcome.passed} passed, {outcome.failed} failed"
        say(f"  {step.name:<46} {counts}   {span(ended.seconds)}")
        for remark in outcome.remarks:
            say(f"    {remark}")
        self.total.passed += outcome.passed
        self.total.failed += outcome.failed
        self.total.skipped += outcome.skipped
        self.total.failures += outcome.failures
        name = step.name.removeprefix("test ")
        for case, seconds in outcome.case_seconds.items():
            self.total.case_seconds[f"{name} {case}"] = seconds
        if outcome.failed:
            self.failed_steps.append(f"{name}: {outcome.failed}, see {step.log.relative_to(ROOT)}")
        return not outcome.failed

    def _add_plain(self, step: Step, ended: Ended) -> bool:
        if ended.code == 0:
            say(f"  {step.name:<46} ok      {span(ended.seconds)}")
            return True
        say(f"  {step.name:<46} FAILED  {span(ended.seconds)}")
        words = [str(TOOLS / "call"), "last_words", str(step.log)]
        shown = subprocess.run(words, capture_output=True, text=True, check=False).stdout  # noqa: S603
        for line in shown.splitlines():
            say(f"    | {line}")
        say(f"    whole log: {step.log.relative_to(ROOT)}")
        self.total.failed += 1
        self.failed_steps.append(step.name)
        return False


def show_slowest(account: Account, seconds: float, cores: int) -> None:
    """Print where the time went."""
    times = sorted(account.times, key=lambda one: one[1].seconds, reverse=True)
    times = [one for one in times[:SHOWN] if one[1].seconds >= LEAST_SECONDS]
    if times:
        say(f"\n  {'slowest steps':<42} {'time':>13} {'CPU time':>13}   cores")
    for step, ended in times:
        used = ended.cpu_seconds / ended.seconds
        say(f"  {step.name:<42} {span(ended.seconds):>13} {span(ended.cpu_seconds):>13} {used:>7.1f}")
    cases = sorted(account.total.case_seconds.items(), key=lambda case: case[1], reverse=True)
    cases = [case for case in cases[:SHOWN] if case[1] >= LEAST_SECONDS]
    if cases:
        say("\n  slowest tests")
    for name, took in cases:
        say(f"  {span(took):>11}  {name}")
    busy = sum(ended.cpu_seconds for _, ended in account.times) / (seconds * cores)
    say(f"\n  {cores} cores were busy {busy:.0%} of the time")


def main(mode: str, pattern: str) -> int:
    """Run the plan; the last line is "N passed, N failed[, N skipped]"."""
    # So that the steps are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began_at = time.monotonic()
    account, cores = Account(), len(os.sched_getaffinity(0))
    left = schedule.run(steps_of(make_run(mode, pattern)), cores, account.add)
    seconds = time.monotonic() - began_at
    total = account.total
    show_slowest(account, seconds, cores)
    (LOGS / "failures.txt").write_text("".join(f"\n  FAILED {text}\n" for text in total.failures))
    say((LOGS / "failures.txt").read_text().rstrip("\n"))
    for step in left:
        say(f"  not run: {step.name}")
    for text in account.failed_steps:
        say(f"  failed: {text}")
    if total.passed + total.failed == 0:
        say("  no test ran: that is a failure")
        total.failed = 1
    say(f"  in {span(seconds)}")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    say(f"{total.passed} passed, {total.failed} failed{skipped}")
    return 1 if total.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:3]))
    except KeyboardInterrupt:
        sys.exit(130)
