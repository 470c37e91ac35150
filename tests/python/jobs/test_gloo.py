"""Gloo under horovod in a process that has another Gloo: that of torch.distributed, which works beside us."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hosts import Hosts, finish, needs_hosts
from job import LIMIT_SECONDS, horovodrun, run, write_script

PROGRAM = """
import os
import sys

order, meeting = sys.argv[1:]
if order == "before":
    import torch.distributed
from horovod._core.basics import basics
from horovod._core.integers import allgather_integers
from horovod._core.process_sets import global_process_set

basics.init()
assert ("torch" in sys.modules) == (order == "before")
LARGE = 50_000  # what goes through Gloo
values = [basics.rank()] * LARGE
assert allgather_integers(values, global_process_set, "first") == [[0] * LARGE, [1] * LARGE]

import torch
import torch.distributed as dist
import horovod.torch as hvd

dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=hvd.rank(), world_size=hvd.size())
for step in range(5):
    ours = torch.arange(LARGE, dtype=torch.float32) + hvd.rank()
    theirs = ours.clone()
    handle = hvd.allreduce_async(ours, op=hvd.Sum, name="ours")
    dist.all_reduce(theirs)
    assert torch.equal(hvd.synchronize(handle), theirs), step
dist.destroy_process_group()
values = [basics.rank()] * LARGE
assert allgather_integers(values, global_process_set, "last") == [[0] * LARGE, [1] * LARGE]
hvd.shutdown()
os.write(1, b"both were right\\n")
"""


def has_gloo() -> bool:
    """Whether the package was built with the plug-in."""
    return "    [X] Gloo\n" in run([horovodrun(), "--check-build"]).output


@needs_hosts
@pytest.mark.parametrize("order", ["before", "after"])
def test_the_gloo_of_torch_and_ours_work_in_one_process_in_any_order(tmp_path: Path, order: str) -> None:
    if not has_gloo():
        pytest.skip("the package was built without Gloo")
    with Hosts(2) as hosts:
        places = ",".join(f"{hosts.address(name)}:1" for name in hosts.names)
        program = [sys.executable, write_script(tmp_path, PROGRAM), order, str(tmp_path / "meeting")]
        job = hosts.start(
            "h1",
            [horovodrun(), "--gloo", "-np", "2", "-H", places, *program],
            HOROVOD_SSH_COMMAND=hosts.write_shell(tmp_path / "shell"),
            HOROVOD_LOG_LEVEL="info",
            GLOO_SOCKET_IFNAME="eth0",  # torch's: the names of these hosts have no addresses
        )
        ended = finish([job], LIMIT_SECONDS)[0]

    assert ended.code == 0, ended.output
    assert ended.output.count("both were right") == 2, ended.output
    assert "Gloo carries the data between hosts (Gloo " in ended.output, ended.output
