"""Hosts, and the places of ranks on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from horovod.runner._program import plan
from horovod.runner.common.util import hosts
from horovod.runner.common.util.hosts import HostInfo, SlotInfo


def test_a_list_of_hosts_is_read() -> None:
    assert hosts.parse_hosts("gpu-1:2,10.0.0.7:4,[fd00::1]:1") == [
        HostInfo("gpu-1", 2),
        HostInfo("10.0.0.7", 4),
        HostInfo("[fd00::1]", 1),
    ]


@pytest.mark.parametrize("text", ["", "gpu1", "gpu1:", "gpu1:x", "gpu1:2,,gpu2:2", "gpu 1:2", "-oProxy:1x"])
def test_anything_else_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(ValueError, match="expected host:slots, got"):
        hosts.parse_hosts(text)


def test_of_a_name_that_comes_twice_the_last_slots_count() -> None:
    assert hosts.parse_hosts_and_slots("a:1,b:2,a:3") == (["a", "b", "a"], {"a": 3, "b": 2})


def test_a_host_file_may_have_all_forms(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\ngpu1 slots=4\n\ngpu2:2  # half\ngpu3\ngpu4 slots=2 max_slots=8\n")

    assert hosts.parse_host_files(str(file)) == "gpu1:4,gpu2:2,gpu3:1,gpu4:2"


def test_a_bad_line_of_a_host_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("gpu1 slots=4\ngpu2 with=4\n")

    with pytest.raises(ValueError, match=r"line 2: expected .*got 'gpu2 with=4'"):
        hosts.parse_host_files(str(file))


def test_ranks_fill_hosts_and_cross_ranks_count_those_with_the_same_local_rank() -> None:
    found = hosts.get_host_assignments(hosts.parse_hosts("worker-0:1,worker-1:2"), 3)

    assert found == [
        SlotInfo("worker-0", rank=0, local_rank=0, cross_rank=0, size=3, local_size=1, cross_size=2),
        SlotInfo("worker-1", rank=1, local_rank=0, cross_rank=1, size=3, local_size=2, cross_size=2),
        SlotInfo("worker-1", rank=2, local_rank=1, cross_rank=0, size=3, local_size=2, cross_size=1),
    ]


def test_all_slots_are_used_unless_there_is_a_maximum() -> None:
    given = hosts.parse_hosts("worker-0:4,worker-1:4")

    assert len(hosts.get_host_assignments(given, 2)) == 8
    limited = hosts.get_host_assignments(given, 2, 5)
    assert [slot.hostname for slot in limited] == ["worker-0"] * 4 + ["worker-1"]
    assert {slot.size for slot in limited} == {5}


def test_too_few_slots_are_an_error() -> None:
    with pytest.raises(ValueError, match=r"5 processes were requested.*only 4 slots"):
        hosts.get_host_assignments(hosts.parse_hosts("worker-0:2,worker-1:2"), 5)


def test_the_name_that_was_given_for_this_machine_is_kept() -> None:
    found = hosts.get_host_assignments([HostInfo("localhost", 2)], 2)

    assert [slot.hostname for slot in found] == ["localhost", "localhost"]


def test_a_host_is_its_name() -> None:
    found = hosts.get_host_assignments(hosts.parse_hosts("localhost:2,127.0.0.1:2"), 4)

    assert [slot.hostname for slot in found] == ["localhost"] * 2 + ["127.0.0.1"] * 2
    assert [slot.local_rank for slot in found] == [0, 1, 0, 1]
    assert [slot.cross_rank for slot in found] == [0, 0, 1, 1]
    assert {(slot.local_size, slot.cross_size) for slot in found} == {(2, 2)}


@pytest.mark.parametrize("text", ["a:3,b:1,c:2", "a:1,b:1,a:2", "a:1"])
def test_places_are_those_of_the_launcher(text: str) -> None:
    found = hosts.get_host_assignments(hosts.parse_hosts(text), 1)

    planned = plan([f"--num-proc={len(found)}", f"--hosts={text}", "true"], environment={})["ranks"]
    assert [vars(slot) for slot in found] == [
        {name: rank[name] for name in vars(found[0])} for rank in planned
    ]


def test_a_maximum_of_none_leaves_no_places() -> None:
    given = hosts.parse_hosts("worker-0:2")

    assert hosts.get_host_assignments(given, 0, 0) == []
    with pytest.raises(ValueError, match="only 0 slots"):
        hosts.get_host_assignments(given, 1, 0)


def test_slots_of_a_host_can_be_changed() -> None:
    host = HostInfo("worker-0", 1)

    host.slots += 1

    assert len(hosts.get_host_assignments([host], 2)) == 2


def test_a_place_survives_its_text() -> None:
    slot = SlotInfo("", rank=3, local_rank=1, cross_rank=2, size=8, local_size=4, cross_size=5)

    assert slot.to_response_string() == "3,8,1,4,2,5"
    assert SlotInfo.from_response_string("3,8,1,4,2,5") == slot
    assert hosts.INVALID_SLOT_INFO.to_response_string() == "-1,-1,-1,-1,-1,-1"
