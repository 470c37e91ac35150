"""RayExecutor runs functions on ranks."""

import os
import threading

import pytest
import ray
from cluster_state import places
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from horovod.common.exceptions import HorovodInternalError
from horovod.ray import RayExecutor
from horovod.ray._collect import collect
from horovod.ray._slots import NotEnoughSlotsError

SETTINGS = RayExecutor.create_settings(timeout_s=120, placement_group_timeout_s=120)


class Counter:
    def __init__(self, start, *, step=1):
        self.value = start
        self.step = step

    def next(self):
        import horovod.torch as hvd

        hvd.init()
        self.value += self.step + hvd.rank()
        return self.value


@pytest.fixture
def executor(make_executor):
    return make_executor(num_workers=2)


def test_the_methods(executor):
    executor.start(Counter, [10], {"step": 5}, extra_env_vars={"FROM_THE_TEST": "yes"})

    assert executor.execute(lambda counter: counter.next()) == [15, 16]
    assert executor.execute_single(lambda counter: counter.value) == 15
    assert executor.run(lambda a, b: a + b, [1], {"b": 2}) == [3, 3]
    assert ray.get(executor.run_remote(os.getenv, ["FROM_THE_TEST"])) == ["yes", "yes"]
    assert executor.run(places) == [(2, 2, 1, [(0, 0, 0), (1, 1, 0)])] * 2
    with pytest.raises(RuntimeError, match="the workers run already"):
        executor.adapter.start()


def fail_on_rank_1():
    import torch

    import horovod.torch as hvd

    hvd.init()
    if hvd.rank() == 1:
        raise KeyError(hvd.rank())
    hvd.allreduce(torch.ones(3), name="never")


def test_an_exception_of_one_rank_frees_the_others_and_the_executor_goes_on(executor):
    executor.start()

    with pytest.raises(KeyError, match="in fail_on_rank_1"):
        executor.run(fail_on_rank_1)
    assert executor.run(places)[1][0] == 2


def test_peers_of_a_rank_that_raised_get_an_internal_error(executor):
    executor.start()

    outcome = collect(executor.run_remote(fail_on_rank_1))

    assert isinstance(outcome.failures[0], HorovodInternalError)
    assert outcome.cause()[0] == 1
    assert outcome.workers_are_usable


def test_workers_see_the_gpus_of_their_node(make_executor):
    executor = make_executor(num_workers=2, use_gpu=True)
    executor.start()

    assert executor.run(os.getenv, ["CUDA_VISIBLE_DEVICES"]) == ["0,1", "0,1"]


def test_a_function_that_cannot_be_pickled_is_named(executor):
    lock = threading.Lock()

    def uses_lock():
        return lock

    executor.start()

    with pytest.raises(TypeError, match=r"RayExecutor.run: .*uses_lock or its arguments cannot be pickled"):
        executor.run(uses_lock)
    assert executor.run(os.getpid)


def test_a_worker_without_the_framework_says_so(executor):
    def imports():
        import framework_that_is_not_there  # noqa: F401

    executor.start()

    with pytest.raises(ModuleNotFoundError, match="framework_that_is_not_there"):
        executor.run(imports)


def test_more_workers_than_slots_are_refused_at_once(cluster):
    with pytest.raises(NotEnoughSlotsError, match="expected room for 50 workers with 1 CPU"):
        RayExecutor(SETTINGS, num_workers=50).start()
    with pytest.raises(TimeoutError, match="expected room for 4 nodes with 2 CPU"):
        RayExecutor(SETTINGS, num_hosts=4, num_workers_per_host=2).start()
    with pytest.raises(AssertionError, match="not both"):
        RayExecutor(SETTINGS, num_workers=1, num_hosts=1).start()


def test_slots_that_are_taken_are_waited_for_and_nothing_is_left(cluster):
    group = placement_group([{"CPU": 2}])
    ray.get(group.ready(), timeout=60)
    settings = RayExecutor.create_settings(placement_group_timeout_s=1)

    with pytest.raises(TimeoutError, match="were not placed within 1 s"):
        RayExecutor(settings, num_workers=2).start()

    remove_placement_group(group)
    assert all(one["state"] == "REMOVED" for one in placement_group_table().values())


def test_workers_go_into_the_placement_group_of_the_caller(cluster):
    @ray.remote(num_cpus=0)
    def drive():
        executor = RayExecutor(SETTINGS, num_workers=2)
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
