"""horovod.spark.run on executors of their own, each another host for Horovod: local-cluster[2,1,1024]."""

import io
import os
import signal
import sys
import time

import cloudpickle
import pytest
from spark_sessions import containers
from waiting import Watched, wait_for_ends, wait_in_job

import horovod.spark
from horovod._cluster.failures import RankError

cloudpickle.register_pickle_by_value(sys.modules["waiting"])
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def spark(tmp_path_factory):
    with containers(tmp_path_factory.mktemp("containers")) as one:
        yield one


def _sum_over_hosts():
    import torch

    import horovod.torch as hvd

    hvd.init()
    total = hvd.allreduce(torch.full([100_000], float(hvd.rank() + 1)), op=hvd.Sum)
    return hvd.rank(), hvd.local_size(), hvd.cross_size(), float(total.sum())


def test_executors_are_hosts_of_one_job():
    assert horovod.spark.run(_sum_over_hosts, num_proc=2) == [(0, 1, 2, 300_000.0), (1, 1, 2, 300_000.0)]


def test_more_ranks_than_slots_are_refused():
    start = time.monotonic()

    with pytest.raises(RuntimeError, match="num_proc is 3, but the Spark application has 2 task slots"):
        horovod.spark.run(_sum_over_hosts, num_proc=3)

    assert time.monotonic() - start < 30


def _ancestor_named(pid, name):
    """The process above `pid` whose program has that name."""
    while pid > 1:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            program, rest = file.read().rsplit(")", 1)
        if program.endswith(f"({name}"):
            return pid
        pid = int(rest.split()[1])
    message = f"no {name} above"
    raise AssertionError(message)


def test_a_lost_executor_fails_the_job_and_leaves_nothing_behind():
    def kill():
        os.kill(_ancestor_named(stdout.pids()[0], "java"), signal.SIGKILL)

    stdout = Watched("pid", 2, kill)
    start = time.monotonic()

    with pytest.raises(RankError, match="one or more processes exited with non-zero status"):
        horovod.spark.run(wait_in_job, num_proc=2, stdout=stdout, stderr=io.StringIO())

    assert time.monotonic() - start < 60
    wait_for_ends(stdout.pids())


def _place():
    from horovod._core.basics import HorovodBasics

    hvd = HorovodBasics()
    hvd.init()
    return hvd.rank(), hvd.local_size(), hvd.cross_size()


def test_the_next_job_runs_when_spark_has_replaced_the_executor():
    assert horovod.spark.run(_place, num_proc=2) == [(0, 1, 2), (1, 1, 2)]
