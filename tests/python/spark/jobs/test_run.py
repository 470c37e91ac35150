"""horovod.spark.run on local[2]: results, output, errors, and what is left behind."""

import _thread
import io
import os
import signal
import sys
import threading
import time

import cloudpickle
import pytest
from spark_sessions import session
from waiting import Watched, wait_for_ends, wait_in_job, wait_until

import horovod.spark
from horovod._cluster.failures import RankError
from horovod._cluster.versions import VersionMismatchError
from horovod.runner.common.util.timeout import TimeoutException

cloudpickle.register_pickle_by_value(sys.modules["waiting"])
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module", autouse=True)
def spark():
    with session("local[2]") as one:
        yield one


def _place():
    from horovod._core.basics import HorovodBasics

    hvd = HorovodBasics()
    hvd.init()
    return hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.cross_size()


def test_results_come_by_rank_and_tasks_of_a_host_share_memory():
    def train(first, *, second):
        import torch

        import horovod.torch as hvd

        hvd.init()
        total = hvd.allreduce(torch.full([4], float(hvd.rank() + 1)), op=hvd.Sum)
        return hvd.rank(), hvd.local_size(), total.tolist(), first + second

    results = horovod.spark.run(train, args=(1,), kwargs={"second": 2}, num_proc=2)

    assert results == [(0, 2, [3.0] * 4, 3), (1, 2, [3.0] * 4, 3)]


def test_default_is_the_parallelism_of_spark():
    assert horovod.spark.run(_place) == [(0, 2, 0, 2, 1), (1, 2, 1, 2, 1)]


def test_one_rank():
    assert horovod.spark.run(_place, num_proc=1) == [(0, 1, 0, 1, 1)]


def test_large_results_and_none():
    def make():
        rank = int(os.environ["HOROVOD_RANK"])
        return None if rank == 1 else bytes(10_000_000)

    large, nothing = horovod.spark.run(make, num_proc=2)

    assert len(large) == 10_000_000
    assert nothing is None


def test_output_has_the_rank_in_front():
    def speak():
        print("to stdout", "a" * 20_000)
        print("to stderr", file=sys.stderr)
        sys.stdout.write("no end of line")

    stdout, stderr = io.StringIO(), io.StringIO()
    horovod.spark.run(speak, num_proc=2, stdout=stdout, stderr=stderr)

    lines = stdout.getvalue().splitlines()
    for rank in (0, 1):
        assert f"[{rank}]<stdout>:to stdout {'a' * 20_000}" in lines
        assert f"[{rank}]<stdout>:no end of line" in lines
        said = [line for line in stderr.getvalue().splitlines() if line.startswith(f"[{rank}]<stderr>:")]
        assert said == [f"[{rank}]<stderr>:to stderr"]


def test_output_with_the_time_in_front(capsys):
    horovod.spark.run(print, args=("hello",), num_proc=1, prefix_output_with_timestamp=True)

    line = next(line for line in capsys.readouterr().out.splitlines() if "hello" in line)
    stamp, text = line.split("[0]<stdout>:")
    assert time.strptime(stamp) is not None
    assert text == "hello"


def test_environment_and_executable():
    def look():
        names = ("GIVEN", "CUDA_VISIBLE_DEVICES", "HOROVOD_RANK", "PYTHON_WORKER_FACTORY_SECRET")
        return [os.environ.get(name) for name in names], sys.executable, sys.stdin.read()

    env = {"GIVEN": "a b", "CUDA_VISIBLE_DEVICES": "7", "HOROVOD_RANK": "5"}
    answers = horovod.spark.run(look, num_proc=1, env=env, executable=sys.executable)

    assert answers == [(["a b", None, "0", None], sys.executable, "")]


def test_the_key_is_not_in_environment_arguments_or_closure(monkeypatch):
    from horovod._cluster.job import Job

    made = []
    create = Job.create
    monkeypatch.setattr(Job, "create", lambda: made.append(create()) or made[-1])

    def look():
        with open("/proc/self/environ", "rb") as file, open("/proc/self/cmdline", "rb") as words:  # noqa: PTH123
            return file.read() + words.read() + repr(dict(os.environ)).encode()

    (seen,) = horovod.spark.run(look, num_proc=1)

    assert made[0].key not in seen
    assert made[0].key.hex().encode() not in seen


def test_the_first_cause_is_raised_with_its_traceback():
    def fail():
        import torch

        import horovod.torch as hvd

        hvd.init()
        if hvd.rank() == 1:
            raise KeyError("the cause")  # noqa: EM101, TRY003
        hvd.allreduce(torch.ones(3))

    with pytest.raises(RankError) as error:
        horovod.spark.run(fail, num_proc=2, stderr=io.StringIO())

    assert error.value.rank == 1
    assert "one or more processes exited with non-zero status: rank 1 on host" in str(error.value)
    assert "KeyError: 'the cause'" in str(error.value)
    assert "in fail" in str(error.value)
    assert "_worker.py" not in str(error.value)


def test_a_killed_rank_is_named_and_its_peer_ends():
    stdout = Watched("pid", 2, lambda: os.kill(_pid_of(stdout, 1), signal.SIGKILL))

    with pytest.raises(RankError, match=r"rank 1 on host .* was killed by signal 9 \(SIGKILL\)"):
        horovod.spark.run(wait_in_job, num_proc=2, stdout=stdout, stderr=io.StringIO())

    wait_for_ends(stdout.pids())


def _pid_of(stream, rank):
    lines = stream.getvalue().splitlines()
    return next(int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"[{rank}]<stdout>:pid"))


def test_a_rank_that_exits_is_named():
    with pytest.raises(RankError, match=r"rank 0 .*exited with code 3 before the function returned"):
        horovod.spark.run(os._exit, args=(3,), num_proc=1)


def test_sys_exit_is_a_failure_too():
    with pytest.raises(RankError, match="SystemExit: 4"):
        horovod.spark.run(sys.exit, args=(4,), num_proc=1, stderr=io.StringIO())


def test_an_interruption_ends_the_ranks():
    stdout = Watched("pid", 2, _thread.interrupt_main)

    with pytest.raises(KeyboardInterrupt):
        horovod.spark.run(wait_in_job, num_proc=2, stdout=stdout, stderr=io.StringIO())

    wait_for_ends(stdout.pids())


@pytest.mark.parametrize("function", [_place, None])
@pytest.mark.parametrize("kind", [RuntimeError, TimeoutException])
def test_more_ranks_than_slots_are_refused_at_once(function, kind):
    start = time.monotonic()
    reason = "num_proc is 3, but the Spark application has 2 task slots"

    with pytest.raises(kind, match=f"^Timed out waiting for Spark tasks to start, .*{reason}"):
        horovod.spark.run(function, num_proc=3)

    assert time.monotonic() - start < 10


def test_slots_that_others_use_are_waited_for_until_the_time_is_over(spark, tmp_path):
    started, released = tmp_path / "started", tmp_path / "released"

    def hold(rows):
        started.touch()
        while not released.exists():
            time.sleep(0.05)
        yield from rows

    holder = threading.Thread(
        target=lambda: spark.sparkContext.parallelize([1], 1).mapPartitions(hold).collect()
    )
    holder.start()
    try:
        wait_until(started.exists, "the other job starts")
        with pytest.raises(TimeoutException, match="Timed out waiting for Spark tasks to start: 0 of 2"):
            horovod.spark.run(_place, num_proc=2, start_timeout=2)
    finally:
        released.touch()
        holder.join()


def test_a_function_that_cannot_be_pickled_is_refused():
    lock = threading.Lock()

    with pytest.raises(ValueError, match=r"cannot be sent to the Spark tasks.*lock"):
        horovod.spark.run(lambda: lock, num_proc=1)


def test_a_result_that_cannot_be_pickled_is_a_failure_of_its_rank():
    with pytest.raises(RankError, match=r"rank 0 .*cannot pickle"):
        horovod.spark.run(threading.Lock, num_proc=1, stderr=io.StringIO())


def test_a_worker_without_the_framework_says_so():
    def train():
        import horovod_missing_framework  # noqa: F401

    with pytest.raises(RankError, match=r"ModuleNotFoundError: No module named 'horovod_missing_framework'"):
        horovod.spark.run(train, num_proc=1, stderr=io.StringIO())


def test_a_worker_with_another_horovod_is_refused(monkeypatch):
    from horovod._cluster import job

    monkeypatch.setattr(job, "own_version", lambda: "0.0.7")

    with pytest.raises(
        VersionMismatchError, match=r"has horovod .*, the driver has horovod 0\.0\.7: install the same"
    ):
        horovod.spark.run(_place, num_proc=1)


def test_an_executable_that_is_not_there():
    with pytest.raises(RankError, match="executable '/no/python' is not a program on host"):
        horovod.spark.run(_place, num_proc=1, executable="/no/python")
