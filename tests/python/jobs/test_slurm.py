"""Jobs under a real Slurm: two nodes in namespaces of their own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hosts import why_not
from job import Ended, run, write_key, write_script

PROGRAM = """
import torch
import horovod.torch as hvd
for _ in range(2):
    hvd.init()
    total = hvd.allreduce(torch.ones(1000) * (hvd.rank() + 1), op=hvd.Sum)
    expected = hvd.size() * (hvd.size() + 1) / 2
    assert torch.equal(total, torch.full_like(total, expected)), total
    local, cross = f"{hvd.local_rank()}/{hvd.local_size()}", f"{hvd.cross_rank()}/{hvd.cross_size()}"
    print(f"rank {hvd.rank()}/{hvd.size()} local {local} cross {cross}", flush=True)
    hvd.shutdown()
"""

PLACES = ("rank 0/3 local 0/2 cross 0/2", "rank 1/3 local 1/2 cross 0/1", "rank 2/3 local 0/1 cross 1/2")


def why_no_slurm() -> str | None:
    for program in ("slurmctld", "slurmd", "srun", "munged"):
        if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
            return f"{program} is not installed (apt-get install slurm-wlm slurm-wlm-basic-plugins munge)"
    return why_not()


pytestmark = pytest.mark.skipif(why_no_slurm() is not None, reason=str(why_no_slurm()))


def in_cluster(command: list[str], **variables: str) -> Ended:
    """Run a command on the machine that Slurm's controller is on."""
    namespaces = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]
    cluster = str(Path(__file__).with_name("slurm_cluster.sh"))
    return run([*namespaces, cluster, *command], **variables)


def test_tasks_of_two_nodes_get_a_key_through_pmi(tmp_path: Path) -> None:
    script = write_script(tmp_path, PROGRAM)

    job = in_cluster(["srun", "--mpi=pmi2", "-N2", "-n3", sys.executable, script])

    assert job.code == 0, job.output
    assert [job.output.count(place) for place in PLACES] == [2, 2, 2], job.output


def test_tasks_without_pmi_meet_at_the_first_node_with_the_key_of_a_file(tmp_path: Path) -> None:
    script, key = write_script(tmp_path, PROGRAM), write_key(tmp_path / "key")

    job = in_cluster(["srun", "--mpi=none", "-N2", "-n3", sys.executable, script], HOROVOD_KEY_FILE=key)

    assert job.code == 0, job.output
    assert [job.output.count(place) for place in PLACES] == [2, 2, 2], job.output


def test_tasks_without_pmi_and_key_are_told_how(tmp_path: Path) -> None:
    script = write_script(tmp_path, PROGRAM)

    job = in_cluster(["srun", "--mpi=none", "-N2", "-n2", sys.executable, script])

    assert job.code == 1, job.output
    assert "start it with srun --mpi=pmi2, or set HOROVOD_KEY_FILE" in job.output


def test_a_batch_script_is_no_task_and_its_srun_starts_tasks(tmp_path: Path) -> None:
    script, output = write_script(tmp_path, PROGRAM), tmp_path / "output"
    batch = tmp_path / "job.sbatch"
    program = f"{sys.executable} {script}"
    batch.write_text(f"#!/bin/sh\n{program} && srun --mpi=pmi2 --ntasks-per-node=1 {program}\n")

    job = in_cluster(["sbatch", "--wait", "-N2", "-n2", "--output", str(output), str(batch)])

    text = output.read_text() if output.exists() else ""
    assert job.code == 0, job.output + text
    assert text.count("rank 0/1 local 0/1 cross 0/1") == 2, text
    assert text.count("rank 1/2 local 0/1 cross 1/2") == 2, text
