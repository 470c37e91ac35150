"""What an elastic job on Spark decides without Spark: sizes, and what follows when a worker has ended."""

import json
import pickle

import pytest

from horovod._cluster.elastic.driver import Ended
from horovod._cluster.elastic.exchange import Heard
from horovod._cluster.elastic.line import Kind
from horovod._cluster.elastic.seat import Seat
from horovod.runner.common.util.timeout import TimeoutException
from horovod.spark._elastic_engine import SparkEngine
from horovod.spark._elastic_launch import sizes
from horovod.spark._slots import most_failures


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((None, None, None), (8, 8, 8)),
        ((4, None, None), (4, 4, 4)),
        ((4, 2, None), (4, 2, 4)),
        ((None, 2, 6), (2, 2, 6)),
        ((3, 1, 9), (3, 1, 9)),
    ],
)
def test_sizes(given, expected):
    assert sizes(lambda: 8, *given) == expected


@pytest.mark.parametrize("given", [(2, 3, 4), (5, 1, 4), (0, None, None), (2, 0, 2)])
def test_sizes_that_contradict_each_other(given):
    with pytest.raises(ValueError, match="expected 1 <= min_num_proc <= num_proc <= max_num_proc, got"):
        sizes(lambda: 8, *given)


@pytest.mark.parametrize(
    ("master", "setting", "expected"),
    [
        ("local", None, 1),
        ("local[2]", "7", 1),
        ("local[*,3]", None, 3),
        ("local[2, 5]", None, 5),
        ("local-cluster[2,1,1024]", None, 4),
        ("yarn", "9", 9),
    ],
)
def test_how_often_a_task_may_fail(master, setting, expected):
    assert most_failures(master, setting) == expected


class Lines:
    """An exchange that keeps what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, caller, kind, body=b""):
        self.sent.append((caller, kind, body))
        return True


def seat_for(worker, host):
    return Seat("job", "1", worker, host, 0, "s:1", {}, bytes(32))


class Job:
    """An engine with tasks that have called, and workers 0, 1, ... on them."""

    def __init__(self, tasks, *, members=(), start_seconds=60.0, num_proc=1):
        self.lines = Lines()
        self.engine = SparkEngine(
            self.lines,
            num_proc=num_proc,
            most_failures=2,
            start_seconds=start_seconds,
            check=lambda: None,
            is_member=lambda worker: worker in members,
        )
        for caller, attempt in tasks:
            said = {"caller": caller, "hostname": "node", "attempt": attempt}
            self.engine.hear(Heard(caller, Kind.HELLO, json.dumps(said).encode()))

    def start(self, worker, host):
        self.engine.start(seat_for(worker, host))

    def end(self, caller, worker, code):
        said = {"worker": worker, "code": code, "how": "has ended"}
        self.engine.hear(Heard(caller, Kind.ENDED, json.dumps(said).encode()))


def test_a_task_is_a_host_and_its_worker_gets_no_key_by_the_line():
    job = Job([("0.0", 0), ("1.0", 0)])

    job.start(3, "node/1.0.0")

    assert job.engine.hosts() == {"node/0.0.0": 1, "node/1.0.0": 1}
    caller, kind, body = job.lines.sent[0]
    assert (caller, kind) == ("1.0", Kind.START)
    assert json.loads(body)["worker"] == 3
    assert "key" not in json.loads(body)
    assert job.engine.hear(Heard("1.0", Kind.PACKET, b"hi")) == 3


def test_the_result_comes_in_parts():
    job = Job([("0.0", 0)])
    job.start(0, "node/0.0.0")
    result = pickle.dumps({"answer": 42})

    for part in (result[:3], result[3:]):
        job.engine.hear(Heard("0.0", Kind.RESULT, part))
    job.end("0.0", 0, 0)

    assert job.engine.results == {0: {"answer": 42}}
    assert job.engine.look() == [Ended(0, 0, "has ended")]
    assert job.engine.hosts() == {"node/0.0.0": 1}


@pytest.mark.parametrize(
    ("attempt", "is_member", "sent", "hosts"),
    [
        (0, True, [Kind.FAIL], {}),  # Spark starts it somewhere else
        (1, True, [], {"node/0.1.1": 1}),  # once more would end the Spark job: the same place, as a new host
        (0, False, [], {"node/0.0.0": 1}),  # a program that cannot begin is the decider's business
    ],
)
def test_what_becomes_of_a_task_whose_worker_failed(attempt, is_member, sent, hosts):
    caller = f"0.{attempt}"
    job = Job([(caller, attempt)], members={0} if is_member else set())
    job.start(0, f"node/{caller}.0")
    del job.lines.sent[:]

    job.end(caller, 0, 9)

    assert [kind for _, kind, _ in job.lines.sent] == sent
    assert job.engine.hosts() == hosts
    assert job.engine.look() == [Ended(0, 9, "has ended")]


def test_a_task_that_goes_takes_its_worker_and_its_host_with_it():
    job = Job([("0.0", 0), ("1.0", 0)])
    job.start(0, "node/0.0.0")

    job.engine.hear(Heard("0.0", None, b"the connection has ended"))
    job.start(1, "node/0.0.0")

    assert [(ended.worker, ended.code) for ended in job.engine.look()] == [(0, 1), (1, 1)]
    assert job.engine.hosts() == {"node/1.0.0": 1}


def test_tasks_that_do_not_start_are_a_timeout():
    job = Job([("0.0", 0)], num_proc=2, start_seconds=0.0)

    with pytest.raises(
        TimeoutException, match="Timed out waiting for Spark tasks to start: 1 of 2 had called"
    ):
        job.engine.look()
