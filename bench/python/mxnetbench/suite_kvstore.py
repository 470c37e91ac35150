"""Whole training steps with gluon, against MXNet's own kvstore `dist_sync`: a server for each worker."""

from __future__ import annotations

import os
import subprocess
import sys

from benchlib.cases import make_case, taken
from benchlib.contest import Contest
from benchlib.effort import Effort
from benchlib.ports import free_port
from benchlib.readings import CaseReadings
from benchlib.world import World

from .checks import check_training
from .problems import Cnn
from .ways import dist_sync, horovod


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare on the network whose share of the speed without communication is measured, too."""
    _start_servers(world)
    problem, other = Cnn(world.rank), Cnn(world.rank)
    ours, peer = horovod(problem), dist_sync(other)
    check_training(world, ours, problem)
    check_training(world, peer, other)
    name = f"np={world.size} kvstore: {problem.name}"
    rounds = Contest(world).measure(name, [ours, peer], effort)
    return [make_case(name, "ms", world.size, rounds, [taken("ours", ours.name), taken("peer", peer.name)])]


def _start_servers(world: World) -> None:
    """Start a scheduler and a server for each rank, and make this process one of their workers."""
    port = world.object_from_first(free_port())
    everybody = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NUM_WORKER": str(world.size),
        "DMLC_NUM_SERVER": str(world.size),
        "DMLC_INTERFACE": "lo",
    }
    roles = ["server"] + (["scheduler"] if world.is_first else [])
    for role in roles:
        # Serves from the import on, until the workers end; horovodrun ends what a job leaves behind.
        subprocess.Popen(
            [sys.executable, "-c", "import mxnet"], env={**os.environ, **everybody, "DMLC_ROLE": role}
        )
    os.environ.update(everybody, DMLC_ROLE="worker")
