"""horovod.spark.run_elastic in one process of Spark: workers come and go, others stay in their processes."""

import io
import os
import signal
import sys
import time

import cloudpickle
import elastic_training
import pytest
from elastic_training import changes_of, train
from spark_sessions import session
from waiting import wait_for_ends

import horovod.spark
from horovod._cluster.failures import RankError

cloudpickle.register_pickle_by_value(elastic_training)
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def spark():
    with session("local[3]") as one:
        yield one


def test_a_killed_worker_is_replaced_and_the_others_stay_in_their_processes(tmp_path):
    killed = tmp_path / "killed"
    said = io.StringIO()

    def die_once(state, rank):
        if state.step == 5 and rank == 1 and not killed.exists():
            killed.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)

    def is_done(state):
        return changes_of(state.sizes)[:3] == [3, 2, 3] and state.sizes[-3:] == (3, 3, 3)

    results = horovod.spark.run_elastic(
        train, args=[is_done, die_once], num_proc=3, min_num_proc=2, max_num_proc=3, stdout=said
    )

    assert [result["rank"] for result in results] == [0, 1, 2]
    assert changes_of(results[0]["sizes"]) == [3, 2, 3]
    assert all(result["sizes"] == results[0]["sizes"] for result in results)
    assert [result["own_steps"][0] for result in results[:2]] == [0, 0]  # the survivors, since the beginning
    assert results[2]["own_steps"][0] >= 5
    assert len({result["weight"] for result in results}) == 1
    assert "[3]<stdout>:hello from worker 3" in said.getvalue()
    wait_for_ends([result["pid"] for result in results])


def test_a_function_that_fails_everywhere_ends_the_job_at_once():
    def fail(what):
        raise ValueError(what)

    start = time.monotonic()

    with pytest.raises(RankError, match=r"(?s)no worker came as far as init.*ValueError: a mistake"):
        horovod.spark.run_elastic(fail, args=["a mistake"], num_proc=2, start_timeout=120)

    assert time.monotonic() - start < 90


def test_numbers_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="got 3, 2 and 4"):
        horovod.spark.run_elastic(print, num_proc=2, min_num_proc=3, max_num_proc=4)
