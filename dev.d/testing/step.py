"""A step of a test run: a command, what it needs, and how it loads the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build/logs"


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command of a step ended."""

    code: int
    timed_out: bool
    seconds: float
    cpu_seconds: float  # of all its processes that were waited for


@dataclass(slots=True)
class Outcome:
    """What a step has to say: counts of single tests, and the text of what failed."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)  # each with its title and last lines
    case_seconds: dict[str, float] = field(default_factory=dict)  # of single tests
    note: str = ""  # in place of the counts
    remarks: list[str] = field(default_factory=list)  # shown beneath them


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `cores` is what keeps tests from disturbing each other, see schedule.py."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    cores: float = 0.5  # how many it keeps busy
    is_build: bool = False  # runs beneath the tests, at low priority
    is_alone: bool = False  # measures, or has tight limits: nothing runs beside it
    may_fail: bool = False  # what needs it runs all the same
    limit_seconds: int = 3600
    environment: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[Step, Ended], Outcome] | None = None  # None: there are no tests in it

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return LOGS / f"{self.name.replace(' ', '-')}.log"
