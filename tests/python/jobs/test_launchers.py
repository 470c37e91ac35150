"""hvd.init() finds its place under every launcher of one host."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from job import LIMIT_SECONDS, clean_environment, run, run_job, write_script

PROGRAM = """
import torch
import horovod.torch as hvd
hvd.init()
total = hvd.allreduce(torch.tensor([float(hvd.rank() + 1)]), op=hvd.Sum).item()
local = f"local {hvd.local_rank()} of {hvd.local_size()}"
print(f"rank {hvd.rank()} of {hvd.size()}, {local}, total {total}", flush=True)
"""


def expected_lines(size: int) -> set[str]:
    total = float(size * (size + 1) // 2)
    return {f"rank {r} of {size}, local {r} of {size}, total {total}" for r in range(size)}


def test_plain_python_is_a_job_of_one(tmp_path: Path) -> None:
    job = run([sys.executable, write_script(tmp_path, PROGRAM)])

    assert job.code == 0, job.output
    assert "rank 0 of 1, local 0 of 1, total 1.0" in job.output


def test_horovodrun(tmp_path: Path) -> None:
    job = run_job(tmp_path, 2, PROGRAM)

    assert job.code == 0, job.output
    assert all(line in job.output for line in expected_lines(2))


def test_torchrun(tmp_path: Path) -> None:
    script = write_script(tmp_path, PROGRAM)
    job = run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc_per_node",
            "2",
            script,
        ]
    )

    assert job.code == 0, job.output
    assert all(line in job.output for line in expected_lines(2))


@pytest.mark.parametrize(
    ("program", "options"),
    [("mpirun.openmpi", ["--allow-run-as-root", "--oversubscribe"]), ("mpirun.mpich", [])],
)
def test_mpirun(tmp_path: Path, program: str, options: list[str]) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    script = write_script(tmp_path, PROGRAM)
    command = [program, *options, "-np", "2", sys.executable, script]
    job = run(command, HOROVOD_CPU_OPERATIONS="native", HOROVOD_CONTROLLER="native")

    assert job.code == 0, job.output
    assert all(line in job.output for line in expected_lines(2))


LAUNCHERS = {
    "Open MPI": lambda r, n: {
        "OMPI_COMM_WORLD_RANK": str(r),
        "OMPI_COMM_WORLD_SIZE": str(n),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(r),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(n),
        "PMIX_NAMESPACE": "python-test",
    },
    "MPICH": lambda r, n: {
        "PMI_RANK": str(r),
        "PMI_SIZE": str(n),
        "MPI_LOCALRANKID": str(r),
        "MPI_LOCALNRANKS": str(n),
    },
    "Slurm": lambda r, n: {
        "SLURM_JOB_ID": "4711",
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": str(r),
        "SLURM_LOCALID": str(r),
        "SLURM_NODEID": "0",
        "SLURM_STEP_NUM_TASKS": str(n),
        "SLURM_STEP_TASKS_PER_NODE": str(n),
    },
    "by hand": lambda r, n: {
        "RANK": str(r),
        "WORLD_SIZE": str(n),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29511",
    },
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_variables_of_other_launchers(tmp_path: Path, launcher: str) -> None:
    script = write_script(tmp_path, PROGRAM)
    ranks = [
        subprocess.Popen(
            [sys.executable, script],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean_environment(**LAUNCHERS[launcher](r, 2)),
        )
        for r in range(2)
    ]
    outputs = [rank.communicate(timeout=LIMIT_SECONDS)[0] for rank in ranks]

    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert {
        line for output in outputs for line in output.splitlines() if line.startswith("rank ")
    } == expected_lines(2)


def test_forked_children_do_not_disturb_the_job(tmp_path: Path) -> None:
    job = run_job(
        tmp_path,
        2,
        """
        import multiprocessing, torch
        import horovod.torch as hvd

        class Rows(torch.utils.data.Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, index):
                return torch.tensor([float(index)])

        hvd.init()
        loader = torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=2)
        for _ in range(2):
            for batch in loader:
                assert torch.equal(hvd.allreduce(batch), batch)
        print("done", hvd.rank(), flush=True)
        """,
    )

    assert job.code == 0, job.output
    assert job.output.count("done") == 2


def test_import_alone_starts_nothing(tmp_path: Path) -> None:
    job = run(
        [
            sys.executable,
            "-c",
            "import threading, horovod.torch as hvd; print(hvd.is_initialized(), threading.active_count())",
        ]
    )

    assert job.output.split() == ["False", "1"]


def test_import_of_the_core_brings_no_framework() -> None:
    job = run(
        [
            sys.executable,
            "-c",
            "import sys, horovod, horovod.common.util; print('torch' in sys.modules, 'numpy' in sys.modules)",
        ]
    )

    assert job.output.split() == ["False", "False"]
