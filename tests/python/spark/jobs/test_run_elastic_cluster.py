"""horovod.spark.run_elastic on executors of their own: one is lost, Spark brings another, the others stay."""

import os
import signal
import sys

import cloudpickle
import elastic_training
import pytest
from elastic_training import changes_of, train
from spark_sessions import containers
from waiting import wait_for_ends

import horovod.spark

pytestmark = pytest.mark.soak  # a cluster of four JVMs

cloudpickle.register_pickle_by_value(elastic_training)
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def spark(tmp_path_factory):
    with containers(tmp_path_factory.mktemp("containers"), executors=3) as one:
        yield one


def _executor_of(pid):
    """The JVM above a process."""
    while pid > 1:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            program, rest = file.read().rsplit(")", 1)
        if program.endswith("(java"):
            return pid
        pid = int(rest.split()[1])
    message = "no java above"
    raise AssertionError(message)


@pytest.mark.parametrize("victim", ["executor", "process"])
def test_what_is_lost_is_replaced_by_spark_and_the_others_stay(tmp_path, victim):
    killed = tmp_path / "killed"

    def lose_once(state, rank):
        if state.step == 5 and rank == 1 and not killed.exists():
            killed.write_text("")
            os.kill(_executor_of(os.getpid()) if victim == "executor" else os.getpid(), signal.SIGKILL)

    def is_done(state):
        return changes_of(state.sizes)[:3] == [3, 2, 3] and state.sizes[-3:] == (3, 3, 3)

    results = horovod.spark.run_elastic(
        train, args=[is_done, lose_once], num_proc=3, min_num_proc=2, max_num_proc=3
    )

    assert [result["rank"] for result in results] == [0, 1, 2]
    assert changes_of(results[0]["sizes"]) == [3, 2, 3]
    assert [result["own_steps"][0] for result in results[:2]] == [0, 0]  # the survivors, since the beginning
    assert results[2]["own_steps"][0] >= 5
    assert len({result["weight"] for result in results}) == 1
    wait_for_ends([result["pid"] for result in results])
