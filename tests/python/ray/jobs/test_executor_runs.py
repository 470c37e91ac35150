"""RayExecutor runs functions on ranks. Workers take long to start, so one executor serves all tests here.

Each test leaves it usable: what breaks an executor is in test_executor_deaths.py.
"""

import os
import threading

import pytest
import ray
from cluster_state import places

from horovod.common.exceptions import HorovodInternalError
from horovod.ray import RayExecutor
from horovod.ray._collect import collect

HELD_CPUS = 2


class Counter:
    def __init__(self, start, *, step=1):
        self.value = start
        self.step = step

    def next(self):
        import horovod.torch as hvd

        hvd.init()
        self.value += self.step + hvd.rank()
        return self.value


@pytest.fixture(scope="module")
def executor(cluster, request):
    settings = RayExecutor.create_settings(timeout_s=120, placement_group_timeout_s=60)
    made = RayExecutor(settings, num_workers=HELD_CPUS)
    # Workers cannot import the modules of tests.
    ray.cloudpickle.register_pickle_by_value(request.module)
    made.start(Counter, [10], {"step": 5}, extra_env_vars={"FROM_THE_TEST": "yes"})
    ray.cloudpickle.unregister_pickle_by_value(request.module)
    yield made
    made.shutdown()


def test_the_methods(executor):
    assert executor.execute(lambda counter: counter.next()) == [15, 16]
    assert executor.execute_single(lambda counter: counter.value) == 15
    assert executor.run(lambda a, b: a + b, [1], {"b": 2}) == [3, 3]
    assert ray.get(executor.run_remote(os.getenv, ["FROM_THE_TEST"])) == ["yes", "yes"]
    assert executor.run(places) == [(2, 2, 1, [(0, 0, 0), (1, 1, 0)])] * 2
    with pytest.raises(RuntimeError, match="the workers run already"):
        executor.start()
    assert executor.run(os.getenv, ["FROM_THE_TEST"]) == ["yes", "yes"]


def fail_on_rank_1():
    import torch

    import horovod.torch as hvd

    hvd.init()
    if hvd.rank() == 1:
        raise KeyError(hvd.rank())
    hvd.allreduce(torch.ones(3), name="never")


def test_an_exception_of_one_rank_frees_the_others_and_the_executor_goes_on(executor):
    with pytest.raises(KeyError, match="in fail_on_rank_1"):
        executor.run(fail_on_rank_1)
    assert executor.run(places)[1][0] == 2


def test_peers_of_a_rank_that_raised_get_an_internal_error(executor):
    outcome = collect(executor.run_remote(fail_on_rank_1))

    assert isinstance(outcome.failures[0], HorovodInternalError)
    assert outcome.cause()[0] == 1
    assert outcome.workers_are_usable


def test_a_rank_that_left_in_a_call_nobody_waited_for_is_taken_in_again(executor):
    def fail_alone():
        from horovod._core.basics import basics

        basics.init()
        if basics.rank() == 1:
            raise KeyError(1)
        return "done"

    first, second = executor.run_remote(fail_alone)

    assert ray.get(first) == "done"
    with pytest.raises(KeyError):
        ray.get(second)
    assert executor.run(places)[1][0] == 2


def test_a_function_that_cannot_be_pickled_is_named(executor):
    lock = threading.Lock()

    def uses_lock():
        return lock

    with pytest.raises(TypeError, match=r"RayExecutor.run: .*uses_lock or its arguments cannot be pickled"):
        executor.run(uses_lock)
    assert executor.run(os.getpid)


def test_a_worker_without_the_framework_says_so(executor):
    def imports():
        import framework_that_is_not_there  # noqa: F401

    with pytest.raises(ModuleNotFoundError, match="framework_that_is_not_there"):
        executor.run(imports)
