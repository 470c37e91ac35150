"""Whether a Spark application has room for a job, decided before anything starts. Pure.

A barrier stage needs all of its slots at once. Spark itself looks again for ten minutes before it says that
there are too few; executors that are promised may still come, others will not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

_LOCAL_FAILURES = re.compile(r"local\[[^\],]+,\s*(\d+)\s*\]")
_TEST_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")

# A cluster that does not say how many executors will come: so long they have after the application began, and
# when one was lost.
REGISTRATION_SECONDS = 30.0
REPLACEMENT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Room:
    """What the application says about its slots; None: it does not say."""

    slots: int | None  # tasks that can run at the same time now
    promised: int | None  # the same when all executors are there that were asked for
    is_local: bool  # one process: nothing will come
    age_seconds: float  # since the application began
    has_dynamic_allocation: bool


class Verdict(Enum):
    """What to do."""

    GO = "go"
    WAIT = "wait"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict with its reason."""

    verdict: Verdict
    reason: str


def decide(num_proc: int, room: Room, waited_seconds: float) -> Decision:
    """Start, look again a little later, or refuse."""
    if room.has_dynamic_allocation:
        return Decision(
            Verdict.REFUSE,
            "Spark has no barrier tasks while executors come and go: "
            "set spark.dynamicAllocation.enabled=false for this application",
        )
    if room.slots is None or room.slots >= num_proc:
        return Decision(Verdict.GO, "there are enough slots, as far as Spark says")
    text = f"num_proc is {num_proc}, but the Spark application has {room.slots} task slots"
    if room.promised is not None and not room.is_local:
        if room.promised >= num_proc:
            return Decision(Verdict.WAIT, f"{text} of {room.promised}: executors are still starting")
        text = f"num_proc is {num_proc}, but the Spark application has {room.promised} task slots at most"
    elif not room.is_local and (
        room.age_seconds < REGISTRATION_SECONDS or waited_seconds < REPLACEMENT_SECONDS
    ):
        return Decision(Verdict.WAIT, f"{text} so far: executors may still be starting")
    advice = "take a smaller num_proc, or give the application more executors or cores"
    return Decision(Verdict.REFUSE, f"{text}: {advice}")


def promised_slots(master: str, setting: Callable[[str], str | None]) -> int | None:
    """Slots of all executors that were asked for; None where nobody said how many."""
    cpus = int(setting("spark.task.cpus") or 1)
    test_cluster = _TEST_CLUSTER.fullmatch(master)
    if test_cluster is not None:
        return int(test_cluster[1]) * (int(test_cluster[2]) // cpus)
    instances, cores = setting("spark.executor.instances"), setting("spark.executor.cores")
    if instances is not None and cores is not None:
        return int(instances) * (int(cores) // cpus)
    most = setting("spark.cores.max")
    return None if most is None else int(most) // cpus


def most_failures(master: str, setting: str | None) -> int:
    """How often Spark lets one task fail before it ends the job; pure."""
    if master == "local" or master.startswith("local["):
        found = _LOCAL_FAILURES.fullmatch(master)
        return int(found[1]) if found is not None else 1
    return int(setting or 4)
