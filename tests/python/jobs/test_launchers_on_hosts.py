"""Launchers other than horovodrun, with ranks on several hosts."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from hosts import Hosts, finish, needs_hosts
from job import Ended, run, write_key, write_script

PROGRAM = """
import os, torch
import horovod.torch as hvd
for _ in range(2):  # a second start has a key of its own
    hvd.init()
    ones = torch.ones(100_000) * (hvd.rank() + 1)
    total = hvd.allreduce(ones, op=hvd.Sum)
    assert torch.equal(total, torch.full_like(total, 6.0 if hvd.size() == 3 else 10.0)), total
    local, cross = f"{hvd.local_rank()}/{hvd.local_size()}", f"{hvd.cross_rank()}/{hvd.cross_size()}"
    line = f"rank {hvd.rank()}/{hvd.size()} local {local} cross {cross}\\n"
    os.write(1, line.encode())  # whole lines, although ranks share the pipe
    hvd.shutdown()
"""


def torchrun(hosts: Hosts, name: str, per_host: int, script: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        f"--nnodes={len(hosts.names)}",
        f"--nproc_per_node={per_host}",
        f"--node_rank={hosts.names.index(name)}",
        f"--master_addr={hosts.address('h1')}",
        "--master_port=29500",  # of a network that nobody else is in
        script,
    ]


@needs_hosts
def test_ranks_that_torchrun_started_on_two_hosts_meet_through_its_store(tmp_path: Path) -> None:
    script = write_script(tmp_path, PROGRAM)

    with Hosts(2) as hosts:
        ended = finish([hosts.start(name, torchrun(hosts, name, 2, script)) for name in hosts.names])

    output = "".join(one.output for one in ended)
    assert [one.code for one in ended] == [0, 0], output
    for rank in range(4):
        line = f"rank {rank}/4 local {rank % 2}/2 cross {rank // 2}/2\n"
        assert output.count(line) == 2, output


OPEN_STORE = """
import os
import torch
import horovod.torch as hvd
from torch.distributed import TCPStore

hvd.init()
hvd.allreduce(torch.ones(1))  # everybody has come
store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
names = ["key", "key/sealed", *(f"key/{rank}" for rank in range(hvd.size()))]
prefix = os.environ["HOROVOD_JOB_ID"]
assert store.check([f"{prefix}/horovod/1/roster"]), "this is the store that the ranks used"
roster = store.get(f"{prefix}/horovod/1/roster")
os.write(1, f"shows addresses: {b'10.98.0.' in roster}\\n".encode())
left = [name for name in names if store.check([f"{prefix}/horovod/1/{name}"])]
os.write(1, f"left {left}\\n".encode())
hvd.allreduce(torch.ones(1))
"""


@needs_hosts
def test_nobody_finds_the_key_in_torchruns_store(tmp_path: Path) -> None:
    script = write_script(tmp_path, OPEN_STORE)

    with Hosts(2) as hosts:
        jobs = [
            hosts.start(name, torchrun(hosts, name, 2, script), HOROVOD_JOB_ID="a-job")
            for name in hosts.names
        ]
        ended = finish(jobs)

    output = "".join(one.output for one in ended)
    assert [one.code for one in ended] == [0, 0], output
    assert output.count("left []\n") == 4, output
    assert output.count("shows addresses: False\n") == 4, output
    assert output.count("agreed on a key through the launcher's store") == 1, output
    assert "HOROVOD_KEY_FILE" in output


@needs_hosts
def test_ranks_of_torchrun_with_a_key_file_do_not_use_its_store_for_one(tmp_path: Path) -> None:
    script, key = write_script(tmp_path, PROGRAM), write_key(tmp_path / "key")

    with Hosts(2) as hosts:
        jobs = [
            hosts.start(name, torchrun(hosts, name, 2, script), HOROVOD_KEY_FILE=key) for name in hosts.names
        ]
        ended = finish(jobs)

    output = "".join(one.output for one in ended)
    assert [one.code for one in ended] == [0, 0], output
    assert "agreed on a key" not in output


@needs_hosts
@pytest.mark.skipif(shutil.which("mpirun.mpich") is None, reason="MPICH is not installed")
def test_ranks_that_mpich_started_on_two_hosts_get_a_key_through_pmi(tmp_path: Path) -> None:
    script = write_script(tmp_path, PROGRAM)

    with Hosts(2) as hosts:
        shell, places = hosts.write_shell(tmp_path / "shell"), [hosts.address(name) for name in hosts.names]
        reach = [
            "-launcher",
            "ssh",
            "-launcher-exec",
            shell,
            "-localhost",
            places[0],
            "-hosts",
            ",".join(places),
        ]
        command = ["mpirun.mpich", *reach, "-ppn", "2", "-np", "4", sys.executable, script]
        # Without MPI itself, which would bring them together in its own way.
        ended = finish([hosts.start("h1", command, HOROVOD_CONTROLLER="native")])[0]

    assert ended.code == 0, ended.output
    for rank in range(4):
        line = f"rank {rank}/4 local {rank % 2}/2 cross {rank // 2}/2\n"
        assert ended.output.count(line) == 2, ended.output


def with_files(setup: str, command: list[str]) -> list[str]:
    """A command that sees other files than the rest of the machine does."""
    return ["unshare", "--mount", "sh", "-c", f'{setup} && exec "$@"', "sh", *command]


PAIR = PROGRAM.replace("6.0 if hvd.size() == 3 else 10.0", "3.0")


def assert_a_pair(ended: list[Ended]) -> None:
    output = "".join(one.output for one in ended)
    assert [one.code for one in ended] == [0, 0], output
    for rank in range(2):
        assert output.count(f"rank {rank}/2 local 0/1 cross {rank}/2\n") == 2, output


@needs_hosts
def test_pods_of_an_indexed_job_meet_at_the_first_with_the_key_of_a_secret(tmp_path: Path) -> None:
    script, key, names = write_script(tmp_path, PAIR), write_key(tmp_path / "key"), tmp_path / "hosts"

    with Hosts(2) as hosts:
        # In a cluster the first of two such lines is the pod's own, the other an answer of the name server.
        names.write_text(
            "".join(f"{hosts.address(f'h{i + 1}')}\ttrain-{i}.train.ml.svc train-{i}\n" for i in range(2))
        )
        pods = [
            hosts.start(
                name,
                with_files(f"mount --bind {names} /etc/hosts", [sys.executable, script]),
                JOB_COMPLETION_INDEX=str(index),
                HOSTNAME=f"train-{index}",
                HOROVOD_SIZE="2",
                HOROVOD_KEY_FILE=key,
            )
            for index, name in enumerate(hosts.names)
        ]
        ended = finish(pods)

    assert_a_pair(ended)


@needs_hosts
@pytest.mark.skipif(sys.prefix.startswith("/opt/"), reason="Python itself is in /opt")
def test_containers_of_sagemaker_find_their_place_in_the_resource_file(tmp_path: Path) -> None:
    script, key, names = write_script(tmp_path, PAIR), write_key(tmp_path / "key"), tmp_path / "hosts"
    folder = "/opt/ml/input/config"

    with Hosts(2) as hosts:
        names.write_text("".join(f"{hosts.address(f'h{i}')}\talgo-{i}\n" for i in (1, 2)))
        containers = []
        for number, name in enumerate(hosts.names, 1):
            resources = tmp_path / f"{name}.json"
            resources.write_text(
                json.dumps({"current_host": f"algo-{number}", "hosts": ["algo-1", "algo-2"]})
            )
            setup = (
                f"mount --bind {names} /etc/hosts && mount -t tmpfs none /opt && mkdir -p {folder} && "
                f"cp {resources} {folder}/resourceconfig.json"
            )
            command = with_files(setup, [sys.executable, script])
            containers.append(hosts.start(name, command, HOROVOD_KEY_FILE=key))
        ended = finish(containers)

    assert_a_pair(ended)


def test_ranks_on_several_hosts_that_nobody_introduces_are_told_how(tmp_path: Path) -> None:
    script = write_script(tmp_path, "import horovod.torch as hvd\nhvd.init()")

    job = run([sys.executable, script], RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")

    assert job.code == 1
    assert "nothing says how they find each other" in job.output
    assert "HOROVOD_KEY_FILE" in job.output
