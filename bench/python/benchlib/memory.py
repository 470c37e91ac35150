"""What Horovod needs of a rank's memory, beyond the same training without it.

Two jobs, one that has never heard of Horovod and one that trains with it. A rank counts its own
pages, its share of files that several processes map, and all pages of shared memory it touches.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .launching import Launcher
from .readings import CaseReadings, Entrant, Round


@dataclass(frozen=True, slots=True)
class MemoryCase:
    """What is trained, and the figure to stay below."""

    name: str
    module: str
    """Run as `python -m MODULE plain|horovod PLACE`; ends with write_used_mib()."""
    limit_mib: float


def measure_memory(launcher: Launcher, folder: Path, np: int, count: int, case: MemoryCase) -> CaseReadings:
    """Compare the ranks of pairs of jobs; the rank with the largest difference counts."""
    rounds = []
    for index in range(count):
        used = {}
        for way in ("plain", "horovod"):
            place = folder / f"memory-{index}-{way}"
            place.mkdir()
            launcher.run_job(np, case.module, way, str(place))
            used[way] = [float((place / f"rank-{rank}").read_text(encoding="ascii")) for rank in range(np)]
        differences = [ours - plain for ours, plain in zip(used["horovod"], used["plain"], strict=True)]
        rounds.append(Round([max(differences), case.limit_mib]))
    entrants = [Entrant("horovod", "ours"), Entrant("figure", "limit")]
    return CaseReadings(f"np={np} memory: {case.name}", "MiB", np, entrants, rounds)


# ---- inside the rank that is measured


def used_mib() -> float:
    """Return what this process occupies, from the kernel's own sums, which are in KiB."""
    shares = _kib_fields(Path("/proc/self/smaps_rollup"))
    status = _kib_fields(Path("/proc/self/status"))
    return (shares["Pss_Anon"] + shares["Pss_File"] + status["RssShmem"]) / 1024


def write_used_mib(place: str) -> None:
    """Write down what this rank occupies, for measure_memory."""
    (Path(place) / f"rank-{os.environ['HOROVOD_RANK']}").write_text(f"{used_mib()}", encoding="ascii")


def _kib_fields(path: Path) -> dict[str, int]:
    lines = (line.split() for line in path.read_text(encoding="ascii").splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if words[-1] == "kB"}
