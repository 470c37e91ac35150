"""Jobs under a real Slurm: two nodes in namespaces of their own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hosts import why_not
from job import Ended, run, write_script

PROGRAM = """
import os, torch
import horovod.torch as hvd
for _ in range(2):
    hvd.init()
    total = hvd.allreduce(torch.ones(1000) * (hvd.rank() + 1), op=hvd.Sum)
    expected = hvd.size() * (hvd.size() + 1) / 2
    assert torch.equal(total, torch.full_like(total, expected)), total
    local, cross = f"{hvd.local_rank()}/{hvd.local_size()}", f"{hvd.cross_rank()}/{hvd.cross_size()}"
    line = f"rank {hvd.rank()}/{hvd.size()} local {local} cross {cross}\\n"
    os.write(1, line.encode())  # whole lines, although ranks share the pipe
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


def test_tasks_without_pmi_and_key_are_told_how(tmp_path: Path) -> None:
    script = write_script(tmp_path, PROGRAM)

    job = in_cluster(["srun", "--mpi=none", "-N2", "-n2", sys.executable, script])

    assert job.code == 1, job.output
    assert "start it with srun --mpi=pmi2, or set HOROVOD_KEY_FILE" in job.output


# sbatch --wait looks after half a minute only.
SUBMIT_AND_WAIT = """
job=$(sbatch --parsable "$@") || exit
while squeue --noheader --jobs="$job" | grep -q .; do sleep 0.2; done
scontrol show job "$job" | grep -q 'ExitCode=0:0'
"""

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "cluster"


def run_example(folder: Path, name: str, prologue: str = "") -> tuple[Ended, str]:
    """Run a batch script of the examples with a task on each node; also what the job printed."""
    write_script(folder, PROGRAM)
    (folder / "program.py").rename(folder / "train.py")
    (folder / "venv/bin").mkdir(parents=True)
    # In place of a virtual environment: this Python, and the launcher beside it.
    activate = f"export PATH={Path(sys.executable).parent}:$PATH\n{prologue}\n"
    (folder / "venv/bin/activate").write_text(activate)
    output = folder / "output"
    smaller = ["--ntasks-per-node=1", "--cpus-per-task=1", "--gpus-per-node=0", f"--output={output}"]
    place = ["--chdir", str(folder), "--export=ALL"]
    submit = ["sh", "-c", SUBMIT_AND_WAIT, "sh"]
    job = in_cluster([*submit, *smaller, *place, str(EXAMPLES / name)], HOME=str(folder))
    return job, output.read_text() if output.exists() else ""


@pytest.mark.parametrize("pmi", ["pmi2", "none"])
def test_the_example_with_srun(tmp_path: Path, pmi: str) -> None:
    # A cluster without PMI is one that does not list it.
    hide = "" if pmi == "pmi2" else 'srun() { [ "$1" = --mpi=list ] || command srun "$@"; }'

    # The batch script itself is no task: started there, the program is a job of one.
    job, text = run_example(tmp_path, "srun.sbatch", f"python train.py\n{hide}")

    assert job.code == 0, job.output + text
    assert text.count("rank 0/1 local 0/1 cross 0/1") == 2, text
    for rank in range(2):
        assert text.count(f"rank {rank}/2 local 0/1 cross {rank}/2") == 2, text
    assert list(tmp_path.glob(".horovod-key*")) == []


# The nodes are one machine, which horovodrun notices.
def test_the_example_with_horovodrun(tmp_path: Path) -> None:
    job, text = run_example(tmp_path, "horovodrun.sbatch")

    assert job.code == 0, job.output + text
    assert "SLURM_JOB_NODELIST" not in text
    for rank in range(2):
        assert text.count(f"rank {rank}/2 local {rank}/2 cross 0/1") == 2, text
