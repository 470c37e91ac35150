"""Reductions in levels, of stand-in GPUs on two hosts: the hierarchical way and the torus."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hosts import Hosts, finish, needs_hosts
from job import Ended, horovodrun
from standins import (
    LIMIT_SECONDS,
    PROGRAMS,
    activities,
    make_torch_backend,
    needs_standins,
    standin_variables,
)

pytestmark = [needs_hosts, needs_standins]

HIERARCHICAL = {"HOROVOD_HIERARCHICAL_ALLREDUCE": "1"}
TORUS = {"HOROVOD_TORUS_ALLREDUCE": "1"}
BY_HOST_MEMORY = ["ALLREDUCE", "NCCL_REDUCESCATTER", "STAGING_ALLREDUCE", "NCCL_ALLGATHER"]
BY_NCCL = ["ALLREDUCE", "NCCL_REDUCESCATTER", "NCCL_ALLREDUCE", "NCCL_ALLGATHER"]
FLAT = ["ALLREDUCE", "NCCL_ALLREDUCE"]


@pytest.fixture(scope="module", autouse=True)
def torch_backend() -> None:
    make_torch_backend()


def job_on_hosts(folder: Path, program: str, *words: str, **variables: str) -> Ended:
    """Run a program of the folder gpu on two hosts with two ranks each; words are the launcher's."""
    with Hosts(2) as hosts:
        places = ",".join(f"{hosts.address(name)}:2" for name in hosts.names)
        path, *arguments = program.split()
        command = [
            *(horovodrun(), "-np", "4", "-H", places, *words),
            *(sys.executable, str(PROGRAMS / path), *arguments),
        ]
        job = hosts.start(
            "h1",
            command,
            HOROVOD_SSH_COMMAND=hosts.write_shell(folder / "shell"),
            STANDIN_DEVICES="4",
            **standin_variables(),
            **variables,
        )
        return finish([job], LIMIT_SECONDS)[0]


def expect_operations(folder: Path, **variables: str) -> list[list[str]]:
    """Run all operations, and return what the timeline says of each."""
    timeline = folder / "timeline.json"
    ended = job_on_hosts(folder, "operations.py", HOROVOD_TIMELINE=str(timeline), **variables)

    assert ended.code == 0, ended.output
    assert ended.output.count("OPERATIONS RIGHT") == 4, ended.output
    assert "no effect" not in ended.output, ended.output
    assert "host memory" not in ended.output, ended.output
    return activities(timeline)


def test_hierarchical_sums_go_between_hosts_by_our_own_collectives(tmp_path: Path) -> None:
    operations = expect_operations(tmp_path, **HIERARCHICAL)

    first = next(names for names in operations if "INIT_NCCL" in names)
    assert first == ["ALLREDUCE", "INIT_NCCL", "NCCL_ALLREDUCE", "STAGING_ALLREDUCE"], first  # of one element
    assert BY_HOST_MEMORY in operations, operations
    assert BY_NCCL not in operations, operations
    assert FLAT in operations, operations  # a maximum
    assert ["BROADCAST", "NCCL_BCAST"] in operations, operations


def test_the_torus_joins_members_with_the_same_place(tmp_path: Path) -> None:
    # Of both settings this one counts.
    operations = expect_operations(tmp_path, **TORUS, **HIERARCHICAL)

    assert BY_NCCL in operations, operations
    assert not any("STAGING_ALLREDUCE" in names and "ADASUM" not in names for names in operations), operations
    assert ["BROADCAST", "NCCL_BCAST"] in operations, operations


def test_nothing_of_nccl_leaves_a_host_under_tls(tmp_path: Path) -> None:
    operations = expect_operations(tmp_path, **HIERARCHICAL, HOROVOD_TLS="1")

    assert BY_HOST_MEMORY in operations, operations
    assert FLAT not in operations, operations
    assert ["ALLREDUCE", "STAGING_ALLREDUCE"] in operations, operations  # a maximum
    assert ["BROADCAST", "STAGING_BROADCAST"] in operations, operations


IN_STREAMS = {
    "HOROVOD_NUM_NCCL_STREAMS": "2",
    "HOROVOD_ENABLE_ASYNC_COMPLETION": "1",
    "STANDIN_ITEM_DELAY_US": "300",
    "STANDIN_NCCL_LAUNCH_US": "500",
}
# Kernels that cannot be loaded leave averages of integers to one stage for all, and that to host memory.
WITHOUT_KERNELS = {"HOROVOD_TLS": "1", "STANDIN_FAIL": "cuModuleLoadData:1:222"}


@pytest.mark.parametrize(
    "variables",
    [HIERARCHICAL, TORUS, HIERARCHICAL | IN_STREAMS, TORUS | IN_STREAMS, HIERARCHICAL | WITHOUT_KERNELS],
    ids=["hierarchical", "torus", "hierarchical-streams", "torus-streams", "hierarchical-tls"],
)
def test_many_at_a_time_are_right(tmp_path: Path, variables: dict[str, str]) -> None:
    ended = job_on_hosts(tmp_path, "levels.py", **variables)

    assert ended.code == 0, ended.output
    assert ended.output.count("LEVELS RIGHT") == 4, ended.output


@pytest.mark.parametrize("asked", [HIERARCHICAL, TORUS], ids=["hierarchical", "torus"])
def test_an_elastic_job_goes_on_when_a_rank_is_killed(tmp_path: Path, asked: dict[str, str]) -> None:
    program = f"elastic.py {tmp_path / 'killed'}"
    ended = job_on_hosts(tmp_path, program, "--min-np", "2", **asked)

    assert ended.code == 0, ended.output
    assert "signal 9" in ended.output, ended.output
    assert "ELASTIC RIGHT 0 of" in ended.output, ended.output
