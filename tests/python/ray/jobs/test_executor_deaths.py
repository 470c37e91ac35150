"""Workers, actors and nodes that go away: the right exception within seconds, and nothing stays."""

import os
import signal
import time
from pathlib import Path

import pytest
import ray
from cluster_state import places, wait_until
from ray.exceptions import ActorDiedError, RayActorError
from ray.util.placement_group import placement_group_table

# "Within seconds" on a machine that is busy with other things.
SECONDS = 30


def wait_for_peers():
    from horovod._core.basics import basics
    from horovod._core.objects import allgather_object

    basics.init()
    allgather_object(1, name="together")
    if basics.rank() == 0:
        allgather_object(1, name="never")
    time.sleep(600)


def assert_nothing_is_left(pids):
    assert all(one["state"] == "REMOVED" for one in placement_group_table().values())
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "workers live on")


@pytest.mark.parametrize("way", ["process", "actor"])
def test_a_killed_worker_ends_the_run(make_executor, way):
    executor = make_executor(num_workers=2)
    executor.start()
    pids = executor.run(os.getpid)
    executor.run(places)
    victim = executor.adapter.workers[1]

    def die():
        from horovod._core.basics import basics

        if basics.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for_peers()

    def run_and_kill():
        references = executor.run_remote(wait_for_peers)
        ray.kill(victim)
        executor.adapter._gather("run", references)

    started = time.monotonic()
    with pytest.raises(ActorDiedError):
        executor.run(die) if way == "process" else run_and_kill()

    assert time.monotonic() - started < SECONDS
    assert_nothing_is_left(pids)
    with pytest.raises(RuntimeError, match="stopped when run failed"):
        executor.run(places)


def test_workers_of_several_nodes_are_grouped_by_node_and_a_lost_node_ends_the_run(
    cluster, second_node, make_executor
):
    executor = make_executor(num_hosts=2, num_workers_per_host=2)
    executor.start()
    pids = executor.run(os.getpid)

    assert executor.run(places) == [(4, 2, 2, [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)])] * 4

    references = executor.run_remote(wait_for_peers)
    last_on_node = references[3]
    assert not ray.wait([last_on_node], timeout=0.1)[0]
    started = time.monotonic()
    cluster.remove_node(second_node, allow_graceful=False)
    with pytest.raises(RayActorError):
        executor.adapter._gather("run", references)

    assert time.monotonic() - started < SECONDS
    assert_nothing_is_left(pids)
