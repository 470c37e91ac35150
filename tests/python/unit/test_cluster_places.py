"""Ranks, assignments and causes of jobs whose processes a cluster engine starts."""

import os

import pytest

from horovod import __version__
from horovod._cluster import enter as entering
from horovod._cluster.failures import RankError, failure_of, first_cause, raise_first
from horovod._cluster.job import Job, assign
from horovod._cluster.places import Place, RankOrder, assign_places
from horovod._cluster.rendezvous import Introduction, introduce
from horovod._cluster.versions import VersionMismatchError
from horovod.common.exceptions import HorovodInternalError


def introduction(host, version=__version__, port=1234):
    return Introduction(
        host=host, hostname=f"{host}.example", address="10.0.0.1", port=port, version=version, pid=7
    )


def caught(error):
    try:
        raise error  # noqa: TRY301
    except Exception as raised:  # noqa: BLE001
        return raised


def test_one_host_has_one_cross_rank():
    places = assign_places(["a", "a"])

    assert places == [Place(0, 2, 0, 2, 0, 1), Place(1, 2, 1, 2, 0, 1)]


def test_ranks_stay_in_the_given_order_and_count_within_hosts():
    places = assign_places(["a", "b", "a", "b", "a"])

    assert [place.rank for place in places] == [0, 1, 2, 3, 4]
    assert [place.local_rank for place in places] == [0, 0, 1, 1, 2]
    assert [place.local_size for place in places] == [3, 2, 3, 2, 3]
    assert [place.cross_rank for place in places] == [0, 1, 0, 1, 0]
    assert [place.cross_size for place in places] == [2, 2, 2, 2, 1]


def test_by_host_ranks_begin_with_the_host_of_worker_0():
    places = assign_places(["b", "a", "c", "b", "a"], RankOrder.BY_HOST)

    # b first because worker 0 is there, then c and a as the sorted list goes round
    assert [place.rank for place in places] == [0, 3, 2, 1, 4]
    assert [place.cross_rank for place in places] == [0, 2, 1, 0, 1]


def test_a_job_without_workers_is_refused():
    with pytest.raises(ValueError, match="at least one worker"):
        assign_places([])


def test_only_jobs_of_several_hosts_have_a_key_and_a_meeting_place():
    job = Job.create()

    together = assign(job, [introduction("a"), introduction("a")])
    apart = assign(job, [introduction("a", port=1), introduction("b", port=2)])

    assert all(one.key is None and one.meeting is None for one in together)
    assert all(one.key == job.key and one.meeting == ("10.0.0.1", 1) for one in apart)


def test_keys_are_fresh_and_never_shown():
    job, other = Job.create(), Job.create()
    assignment = assign(job, [introduction("a"), introduction("b")])[0]

    assert job.key != other.key
    assert job.name != other.name
    for shown in (repr(job), str(job), repr(assignment)):
        assert repr(job.key) not in shown
        assert job.key.hex() not in shown


def test_another_version_is_refused_by_name():
    with pytest.raises(
        VersionMismatchError, match=r"worker 1 \(host b.example.*has horovod 0.0.1, the driver"
    ):
        assign(Job.create(), [introduction("a"), introduction("b", version="0.0.1")])


def test_introductions_survive_json():
    one = introduction("a")

    assert Introduction.from_json(one.to_json()) == one
    with pytest.raises(ValueError, match="about itself as JSON"):
        Introduction.from_json('{"host": "a"}')


def test_an_interface_that_is_missing_is_named():
    with pytest.raises(ValueError, match="none of the interfaces \\['nonesuch0'\\]"):
        introduce("a", "127.0.0.1", ["nonesuch0"])


def test_leaving_restores_the_environment(monkeypatch):
    monkeypatch.setenv("HOROVOD_STORE_ADDRESSES", "of an outer job")
    monkeypatch.delenv("HOROVOD_RANK", raising=False)
    assignment = assign(Job.create(), [introduction("a"), introduction("b")], variables={"MINE": "1"})[1]

    entering.enter(assignment)
    inside = dict(os.environ)
    entering.leave()

    assert inside["HOROVOD_RANK"] == "1"
    assert inside["MINE"] == "1"
    assert "HOROVOD_STORE_ADDRESSES" not in inside
    assert os.environ["HOROVOD_STORE_ADDRESSES"] == "of an outer job"
    assert "HOROVOD_RANK" not in os.environ
    assert "MINE" not in os.environ
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(int(inside["HOROVOD_KEY_FD"]))


def test_the_users_variables_cannot_change_the_place():
    assignment = assign(Job.create(), [introduction("a")], variables={"HOROVOD_RANK": "5"})[0]

    assert entering.variables_of(assignment)["HOROVOD_RANK"] == "0"


def test_the_cause_is_the_first_failure_that_no_peer_made():
    consequence = failure_of(caught(HorovodInternalError("rank 1 has left")), 0)
    cause = failure_of(caught(KeyError("label")), 1)

    assert first_cause([consequence, cause]) is cause
    with pytest.raises(RankError, match=r"the job: rank 1 on host .* raised KeyError: 'label'") as raised:
        raise_first([consequence, cause], "the job")
    assert raised.value.rank == 1
    assert isinstance(raised.value.__cause__, KeyError)
    assert first_cause([]) is None
