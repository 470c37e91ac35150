"""Processes that somebody else starts, taken into one job after the other, on "hosts" of one machine."""

import multiprocessing
import os
from contextlib import contextmanager

import pytest

from horovod._cluster.enter import enter
from horovod._cluster.job import Job, assign
from horovod._cluster.places import RankOrder
from horovod._cluster.rendezvous import introduce

SECONDS = 120


def _sum_of_ranks():
    import horovod.torch as hvd

    hvd.init()
    total = sum(hvd.allgather_object(hvd.rank()))
    return total, hvd.rank(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()


def _sum_and_shutdown():
    import horovod.torch as hvd

    answer = _sum_of_ranks()
    hvd.shutdown()
    return answer


def _key_traces(key):
    environment = open(f"/proc/{os.getpid()}/environ", "rb").read() + repr(dict(os.environ)).encode()  # noqa: SIM115, PTH123
    return any(form in environment for form in (key, key.hex().encode()))


def _serve(pipe):
    while (call := pipe.recv()) is not None:
        function, args = call
        pipe.send(function(*args))


@contextmanager
def workers(count):
    context = multiprocessing.get_context("spawn")
    ends, processes = [], []
    for _ in range(count):
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,))
        process.start()
        ends.append(ours)
        processes.append(process)
    try:
        yield ends
    finally:
        for end in ends:
            end.send(None)
        for process in processes:
            process.join(SECONDS)
            if process.is_alive():
                process.kill()


def on_all(ends, function, arguments):
    for end, given in zip(ends, arguments, strict=True):
        end.send((function, given))
    answers = []
    for end in ends:
        assert end.poll(SECONDS), f"{function.__name__}: no answer after {SECONDS} s"
        answers.append(end.recv())
    return answers


def start_job(ends, hosts, order=RankOrder.AS_GIVEN):
    job = Job.create()
    introductions = on_all(ends, introduce, [(host, "127.0.0.1") for host in hosts])
    assignments = assign(job, introductions, order)
    on_all(ends, enter, [(assignment,) for assignment in assignments])
    return job


@pytest.mark.parametrize("ending", [_sum_and_shutdown, _sum_of_ranks])
def test_processes_with_different_pasts_meet_in_the_next_job(ending):
    with workers(3) as ends:
        start_job(ends[:2], ["a", "a"])
        first = on_all(ends[:2], ending, [()] * 2)
        start_job(ends, ["b", "a", "a"])
        second = on_all(ends, ending, [()] * 3)
        start_job(ends[1:], ["a", "b"])
        third = on_all(ends[1:], ending, [()] * 2)

    assert first == [(1, 0, 0, 2, 0, 1), (1, 1, 1, 2, 0, 1)]
    assert second == [(3, 0, 0, 1, 0, 2), (3, 1, 0, 2, 1, 2), (3, 2, 1, 2, 0, 1)]
    assert third == [(1, 0, 0, 1, 0, 2), (1, 1, 0, 1, 1, 2)]


def test_the_key_is_not_in_the_environment_of_a_worker():
    with workers(2) as ends:
        job = start_job(ends, ["a", "b"])
        traces = on_all(ends, _key_traces, [(job.key,)] * 2)
        sums = on_all(ends, _sum_and_shutdown, [()] * 2)

    assert traces == [False, False]
    assert [answer[0] for answer in sums] == [1, 1]
