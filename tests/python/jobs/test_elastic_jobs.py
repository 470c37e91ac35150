"""Elastic jobs of horovodrun: workers are killed, added, taken away and asked to leave.

The program counts every sample and adds it to a sum, which is equal on all ranks at the end. It needs no
framework, so that a worker starts quickly.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from job import Ended, horovodrun, run, write_script

LIMIT_SECONDS = 120

PROGRAM = """
import os, signal, sys
from pathlib import Path

from horovod._core.basics import basics as hvd
from horovod._core.elastic.shares import ElasticIndices
from horovod._core.elastic.world import World
from horovod._core.objects import allgather_object, broadcast_object
from horovod.common.elastic import ObjectState, run_fn

LENGTH, MOST_EPOCHS = 24, 2000
folder, event, wanted_size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])


def once(name):
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def happen(state):
    # Something happens in the first epoch, after some samples; on one worker, once.
    if state.indices.epoch != 0 or len(state.seen) < 8 or hvd.rank() != hvd.size() - 1:
        return
    if event == "kill" and once("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if event == "raise" and once("raised"):
        raise KeyError("a mistake of this program")
    if event == "leave" and once("left"):
        os.kill(os.getpid(), signal.SIGTERM)
    if event.startswith("hosts=") and once("changed"):
        (folder / "new").write_text(event.removeprefix("hosts="))
        (folder / "new").rename(folder / "hosts")


def train(state):
    assert os.environ["HOROVOD_RANK"] == str(hvd.rank())
    assert os.environ["HOROVOD_SIZE"] == str(hvd.size())
    while state.indices.epoch < MOST_EPOCHS:
        for index in state.indices:
            everybody = allgather_object(index)
            state.seen = (*state.seen, *everybody)
            state.total += sum(everybody)
            state.indices.record_batch(1)
            state.commit()
            happen(state)
        assert set(state.seen) == set(range(LENGTH)), state.seen
        # What does not fill all ranks is repeated at the end of an epoch, and nothing else.
        assert len(state.seen) - LENGTH < hvd.size(), state.seen
        state.seen = ()
        state.indices.set_epoch(state.indices.epoch + 1)
        if hvd.size() == wanted_size and state.indices.epoch >= 2:
            break
        state.commit()
    return state.total


hvd.init()
state = ObjectState(broadcast_object, hvd.rank, indices=ElasticIndices(LENGTH), seen=(), total=0)
state.register_reset_callbacks(
    [lambda: print("reset: rank", hvd.rank(), "of", hvd.size(), "in", os.getpid(), flush=True)]
)
total = run_fn(train, World(hvd.shutdown, hvd.init))(state)
print("done: rank", hvd.rank(), "of", hvd.size(), "total", total, flush=True)
"""


def run_elastic(
    folder: Path, event: str, wanted_size: int, *options: str, hosts: str = "localhost:3", size: int = 3
) -> Ended:
    (folder / "hosts").write_text(hosts + "\n")
    discovery = folder / "discover.sh"
    discovery.write_text(f"#!/bin/sh\ncat {folder}/hosts\n")
    discovery.chmod(0o755)
    script = write_script(folder, PROGRAM)
    command = [sys.executable, script, str(folder), event, str(wanted_size)]
    launch = [horovodrun(), "-np", str(size), "--host-discovery-script", str(discovery)]
    return run([*launch, *options, *command], LIMIT_SECONDS)


def totals(job: Ended) -> list[str]:
    return re.findall(r"done: rank \d+ of \d+ total (\d+)", job.output)


def assert_ended_well(job: Ended, size: int) -> None:
    assert job.code == 0, job.output
    assert len(totals(job)) == size, job.output
    assert len(set(totals(job))) == 1, job.output


def test_a_job_in_which_nothing_happens(tmp_path):
    job = run_elastic(tmp_path, "nothing", 2, "--min-np", "1", hosts="localhost:2", size=2)

    assert_ended_well(job, 2)
    assert "reset:" not in job.output


def test_the_others_go_on_when_one_is_killed(tmp_path):
    job = run_elastic(tmp_path, "kill", 2, "--min-np", "2", "--max-np", "3", hosts="localhost:3")

    assert job.code == 0, job.output
    assert len(set(totals(job))) == 1, job.output
    assert "reset: rank 0 of" in job.output, job.output
    assert "signal 9" in job.output, job.output


def test_the_others_go_on_when_one_raises(tmp_path):
    job = run_elastic(tmp_path, "raise", 2, "--min-np", "2", "--max-np", "3", hosts="localhost:3")

    assert job.code == 0, job.output
    assert "a mistake of this program" in job.output
    assert len(set(totals(job))) == 1, job.output


def test_a_worker_is_added_and_receives_the_state(tmp_path):
    job = run_elastic(tmp_path, "hosts=localhost:3", 3, "--min-np", "2", hosts="localhost:2", size=2)

    assert_ended_well(job, 3)


def test_a_slot_that_goes_takes_its_worker_along(tmp_path):
    job = run_elastic(tmp_path, "hosts=localhost:2", 2, "--min-np", "2", hosts="localhost:3")

    assert_ended_well(job, 2)


def test_sigterm_is_a_planned_leave(tmp_path):
    job = run_elastic(tmp_path, "leave", 2, "--min-np", "2", "--max-np", "3", hosts="localhost:3")

    assert job.code == 0, job.output
    assert len(set(totals(job))) == 1, job.output


def test_a_killed_worker_is_replaced_where_the_job_needs_it(tmp_path):
    job = run_elastic(tmp_path, "kill", 3, "--min-np", "3", hosts="localhost:3")

    assert_ended_well(job, 3)
    assert "signal 9" in job.output, job.output


def test_with_whole_hosts_a_failed_worker_takes_its_host_with_it(tmp_path):
    hosts = "localhost:1\n127.0.0.1:2"

    job = run_elastic(tmp_path, "raise", 1, "--min-np", "1", "--whole-hosts", hosts=hosts)

    assert_ended_well(job, 1)
    assert "new epoch 2 with 1 rank;" in job.output, job.output


def test_with_whole_hosts_a_host_that_comes_is_told_at_once_and_waited_for(tmp_path):
    hosts = "hosts=localhost:1\n127.0.0.1:1"

    job = run_elastic(
        tmp_path,
        hosts,
        2,
        "--min-np",
        "1",
        "--whole-hosts",
        "--elastic-timeout",
        "1",
        hosts="localhost:1",
        size=1,
    )

    assert_ended_well(job, 2)
    assert "new epoch 2 with 2 ranks" in job.output, job.output


RESETS = """
import sys
from pathlib import Path

from horovod._core.basics import basics as hvd
from horovod._core.elastic.world import World
from horovod._core.integers import allgather_integers
from horovod._core.process_sets import global_process_set

hvd.init()
world = World(hvd.shutdown, hvd.init)
world.begin()
count = int(sys.argv[1])
for number in range(1, count + 1):
    world()
    assert allgather_integers([hvd.rank()], global_process_set, "all") == [[0], [1], [2]]
    if number in (count // 10, count):
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        print("kept", status["VmRSS"].split()[0], descriptors, status["Threads"].strip(), flush=True)
"""


@pytest.mark.soak
def test_a_thousand_resets_in_one_process_leave_no_trace(tmp_path):
    count = int(os.environ.get("HVD_ELASTIC_RESETS", "1000"))
    script = write_script(tmp_path, RESETS)

    job = run([horovodrun(), "-np", "3", "--min-np", "3", sys.executable, script, str(count)], 3600)

    assert job.code == 0, job.output
    kept = [tuple(map(int, numbers)) for numbers in re.findall(r"kept (\d+) (\d+) (\d+)", job.output)]
    assert len(kept) == 6, job.output
    early = tuple(max(column) for column in zip(*kept[:3], strict=True))
    late = tuple(max(column) for column in zip(*kept[3:], strict=True))
    assert late[0] < early[0] * 1.1, kept
    assert late[1:] == early[1:], kept
    assert f"{count} resets, " in job.output, job.output
