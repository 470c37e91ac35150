"""The text of the error that a failed job is raised as; programs look for its first line."""

from __future__ import annotations

import re

from ._job import Ended
from ._program import NAME, complaint

FAILED = "Horovod detected that one or more processes exited with non-zero status"

_FIRST_CAUSE = re.compile(r"^horovodrun: rank (\d+) \(.*failed first", re.MULTILINE)
_OVER_HERE = re.compile(r"^horovodrun: the job at \S+ is over for host ", re.MULTILINE)


def has_joined(ended: Ended) -> bool:
    """Whether the launcher says that it took part in the job of another host."""
    return _OVER_HERE.search(ended.last_words) is not None


def first_failed_rank(ended: Ended) -> int | None:
    """The rank that the launcher names as the cause; None: it names none."""
    named = _FIRST_CAUSE.search(ended.last_words)
    return None if named is None else int(named[1])


def headline(launcher: str, code: int) -> str:
    """The first words: of a job of horovodrun itself, or of the launcher that it handed over to."""
    return FAILED if launcher == NAME else f"{launcher} failed with exit code {code}"


def first_process_text(rank: int, code: int) -> str:
    """Which rank failed first, and how."""
    return (
        f"{FAILED}, thus causing the job to be terminated. The first process to do so was:\n"
        f"Process name: {rank}\n"
        f"Exit code: {code}\n"
    )


def failure_text(ended: Ended, launcher: str = NAME) -> str:
    """What happened, then the last that the launcher said."""
    rank = first_failed_rank(ended)
    if launcher != NAME:
        first = headline(launcher, ended.code)
    elif rank is None:
        first = f"{FAILED}: {NAME} ended with code {ended.code}"
    else:
        first = first_process_text(rank, ended.code)
    return f"{first}\n{complaint(ended.last_words)}"
