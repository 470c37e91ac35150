"""What Horovod needs of a rank's memory, beyond the same training without it.

Two jobs, one that has never heard of Horovod and one that trains with it. A rank counts its own
pages, its share of files that several processes map, and all pages of shared memory it touches.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .readings import CaseReadings, Entrant, Round

if TYPE_CHECKING:
    from .launching import Launcher

_LIMIT_MIB: Final = 64.0
_STEPS: Final = 20


def measure_memory(launcher: Launcher, folder: Path, np: int, count: int) -> CaseReadings:
    """Compare the ranks of pairs of jobs; the rank with the largest difference counts."""
    rounds = []
    for index in range(count):
        used = {}
        for way in ("plain", "horovod"):
            place = folder / f"memory-{index}-{way}"
            place.mkdir()
            launcher.run_job(np, "torchbench.memory", way, str(place))
            used[way] = [float((place / f"rank-{rank}").read_text(encoding="ascii")) for rank in range(np)]
        differences = [ours - plain for ours, plain in zip(used["horovod"], used["plain"], strict=True)]
        rounds.append(Round([max(differences), _LIMIT_MIB]))
    entrants = [Entrant("horovod", "ours"), Entrant("figure", "limit")]
    return CaseReadings(f"np={np} memory: ResNet-50 list", "MiB", np, entrants, rounds)


# ---- inside the rank that is measured


def used_mib() -> float:
    """Return what this process occupies, from the kernel's own sums, which are in KiB."""
    shares = _kib_fields(Path("/proc/self/smaps_rollup"))
    status = _kib_fields(Path("/proc/self/status"))
    return (shares["Pss_Anon"] + shares["Pss_File"] + status["RssShmem"]) / 1024


def _kib_fields(path: Path) -> dict[str, int]:
    lines = (line.split() for line in path.read_text(encoding="ascii").splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if words[-1] == "kB"}


def _train(way: str) -> float:
    import torch  # noqa: PLC0415 - the other side of this module must start quickly

    from .parameters import RESNET50  # noqa: PLC0415
    from .problems import cheap  # noqa: PLC0415

    torch.set_num_threads(1)
    problem = cheap(RESNET50, int(os.environ["HOROVOD_RANK"]))
    optimizer: torch.optim.Optimizer = torch.optim.SGD(problem.model.parameters(), problem.learning_rate)
    if way == "horovod":
        import horovod.torch as hvd  # noqa: PLC0415 - the plain job must not have it

        hvd.init()
        optimizer = hvd.DistributedOptimizer(optimizer, problem.model.named_parameters())
    for _ in range(_STEPS):
        optimizer.zero_grad()
        torch.autograd.backward(problem.loss(problem.model))
        optimizer.step()
    return used_mib()


def main(way: str, place: str) -> None:
    """Train and write down what this rank occupies, with its gradients still there."""
    mib = _train(way)
    (Path(place) / f"rank-{os.environ['HOROVOD_RANK']}").write_text(f"{mib}", encoding="ascii")


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
