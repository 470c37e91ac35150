"""Where RayExecutor puts workers, and what it refuses."""

import os
import re

import pytest
import ray
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from horovod import __version__
from horovod._cluster.versions import VersionMismatchError
from horovod.ray import RayExecutor
from horovod.ray._slots import NotEnoughSlotsError
from horovod.ray.strategy import create_placement_group

SETTINGS = RayExecutor.create_settings(timeout_s=120, placement_group_timeout_s=120)


def test_workers_see_the_gpus_of_their_node(make_executor):
    executor = make_executor(num_workers=2, use_gpu=True)
    executor.start()

    assert executor.run(os.getenv, ["CUDA_VISIBLE_DEVICES"]) == ["0,1", "0,1"]


def test_a_placement_group_comes_with_its_bundles(cluster):
    group, bundles = create_placement_group({"CPU": 1, "GPU": 0}, 2, 60, "PACK")

    assert bundles == group.bundle_specs == [{"CPU": 1}, {"CPU": 1}]
    remove_placement_group(group)


def test_more_workers_than_slots_are_refused_at_once(cluster):
    with pytest.raises(NotEnoughSlotsError, match="expected room for 50 workers with 1 CPU"):
        RayExecutor(SETTINGS, num_workers=50).start()
    with pytest.raises(TimeoutError, match="expected room for 4 nodes with 2 CPU"):
        RayExecutor(SETTINGS, num_hosts=4, num_workers_per_host=2).start()
    with pytest.raises(AssertionError, match="not both"):
        RayExecutor(SETTINGS, num_workers=1, num_hosts=1).start()


def test_a_worker_with_another_horovod_is_refused_and_nothing_is_left(make_executor, monkeypatch):
    monkeypatch.setattr("horovod._cluster.job.own_version", lambda: "0.0.7")

    with pytest.raises(
        VersionMismatchError,
        match=rf"worker 0 \(host .* has horovod {re.escape(__version__)}, the driver has horovod 0\.0\.7",
    ):
        make_executor(num_workers=1).start()

    assert all(one["state"] == "REMOVED" for one in placement_group_table().values())


def test_slots_that_are_taken_are_waited_for_and_nothing_is_left(cluster):
    group = placement_group([{"CPU": 2}])
    ray.get(group.ready(), timeout=60)
    settings = RayExecutor.create_settings(placement_group_timeout_s=1)

    with pytest.raises(TimeoutError, match="were not placed within 1 s"):
        RayExecutor(settings, num_workers=2).start()

    remove_placement_group(group)
    assert all(one["state"] == "REMOVED" for one in placement_group_table().values())


@pytest.mark.parametrize("size", [{"num_workers": 2}, {"num_hosts": 2, "num_workers_per_host": 1}])
def test_workers_go_into_the_placement_group_of_the_caller(cluster, size):
    @ray.remote(num_cpus=0)
    def drive():
        with pytest.raises(NotEnoughSlotsError, match=r"3 workers .* the placement group has room for 2"):
            RayExecutor(SETTINGS, num_workers=3).start()
        executor = RayExecutor(SETTINGS, **size)
        executor.start()
        try:
            inside = executor.run(lambda: ray.get_runtime_context().get_placement_group_id())
        finally:
            executor.shutdown()
        return inside, len(placement_group_table())

    before = len(placement_group_table())
    group = placement_group([{"CPU": 1}, {"CPU": 1}])
    strategy = PlacementGroupSchedulingStrategy(group, placement_group_capture_child_tasks=True)

    inside, groups = ray.get(drive.options(scheduling_strategy=strategy).remote(), timeout=240)

    remove_placement_group(group)
    assert inside == [group.id.hex()] * 2
    assert groups == before + 1
