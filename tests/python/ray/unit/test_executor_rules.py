"""What RayExecutor and its parts decide without a cluster."""

import inspect
import stat
import time

import pytest

from horovod.ray import BaseHorovodWorker, ElasticRayExecutor, RayExecutor
from horovod.ray._slots import slots
from horovod.ray.adapter import BaseParams
from horovod.ray.discovery import hosts_and_slots
from horovod.ray.runner import Coordinator, MiniSettings
from horovod.ray.utils import detect_nics, nics_to_env_var
from horovod.runner.common.util.timeout import TimeoutException


def coordinator_of(*nodes):
    coordinator = Coordinator(MiniSettings())
    for rank, node in enumerate(nodes):
        coordinator.register(f"host-of-{node}", node, rank)
    return coordinator


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"max_workers": 3}, "min_workers must be 1 or more"),
        ({"min_workers": 1, "num_workers": 2}, "not both"),
        ({"num_workers": 1, "gpus_per_worker": 1}, "use_gpu is not set"),
        ({"num_workers": 1, "use_gpu": True, "gpus_per_worker": 0}, "must be 1 or more"),
    ],
)
def test_parameters_that_contradict_each_other(arguments, text):
    with pytest.raises(ValueError, match=text):
        RayExecutor(MiniSettings(), **arguments)


def test_elastic_forms_say_that_they_come_later():
    with pytest.raises(NotImplementedError, match="come and go while they run are not there yet"):
        RayExecutor(MiniSettings(), min_workers=1, max_workers=2)
    with pytest.raises(NotImplementedError, match="come and go while they run are not there yet"):
        ElasticRayExecutor(None)
    with pytest.raises(NotImplementedError, match="come and go while they run are not there yet"):
        ElasticRayExecutor.create_settings(min_num_proc=1)


def test_methods_before_start_are_refused():
    executor = RayExecutor(MiniSettings(), num_workers=1)

    with pytest.raises(RuntimeError, match=r"RayExecutor.run: call start\(\) first"):
        executor.run(print)
    executor.shutdown()


def test_the_signature_is_that_of_the_original():
    names = list(inspect.signature(RayExecutor.__init__).parameters)[1:]

    assert names == [
        *("settings", "num_workers", "num_hosts", "num_workers_per_host", "cpus_per_worker", "use_gpu"),
        *("gpus_per_worker", "use_current_placement_group", "min_workers", "max_workers", "reset_limit"),
        *("cooldown_range", "elastic_timeout", "override_discovery"),
    ]
    assert list(inspect.signature(RayExecutor.create_settings).parameters) == [
        *("timeout_s", "ssh_identity_file", "ssh_str", "placement_group_timeout_s", "nics"),
    ]
    assert list(inspect.signature(BaseHorovodWorker.__init__).parameters)[1:] == ["world_rank", "world_size"]


def test_settings(tmp_path):
    file = tmp_path / "key"

    settings = RayExecutor.create_settings(ssh_identity_file=str(file), ssh_str="private")
    RayExecutor.create_settings(ssh_identity_file=str(file), ssh_str="another")

    assert (settings.timeout_s, settings.placement_group_timeout_s, settings.nics) == (30, 100, None)
    assert file.read_text() == "private"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert MiniSettings().key != MiniSettings().key
    assert repr(settings.key) not in repr(settings)
    with pytest.raises(TimeoutException):
        MiniSettings(timeout_s=0).start_timeout.check_time_out_for("a test")
    assert time.monotonic() > 0


def test_the_coordinator_counts_within_and_across_nodes():
    coordinator = coordinator_of("x", "y", "x", "y")

    places = coordinator.finalize_registration()

    assert coordinator.world_size == 4
    assert coordinator.hostnames == {"host-of-x", "host-of-y"}
    assert coordinator.node_id_string == "x:2,y:2"
    assert places[3] == {
        "HOROVOD_CROSS_RANK": 1,
        "HOROVOD_CROSS_SIZE": 2,
        "HOROVOD_LOCAL_RANK": 1,
        "HOROVOD_LOCAL_SIZE": 2,
    }


def test_the_coordinator_refuses_gaps_doubles_and_several_nodes():
    coordinator = Coordinator(MiniSettings())
    coordinator.register("a", "x", 1)

    with pytest.raises(ValueError, match="expected the ranks 0 to 0"):
        coordinator.finalize_registration()
    with pytest.raises(ValueError, match="rank 1 of host b has registered already, on host a"):
        coordinator.register("b", "y", 1)
    with pytest.raises(RuntimeError, match="on 2 nodes"):
        coordinator_of("x", "y").establish_rendezvous()


def test_slots_count_whole_workers_on_each_node():
    nodes = [{"CPU": 4.0, "GPU": 1.0}, {"CPU": 3.0}]

    assert slots(nodes, {"CPU": 2}) == 3
    assert slots(nodes, {"CPU": 1, "GPU": 1}) == 1
    assert slots(nodes, {"CPU": 5}) == 0
    assert slots([{"CPU": 0.3}], {"CPU": 0.1}) == 3


def test_hosts_without_a_slot_are_left_out():
    nodes = [
        {"Alive": True, "NodeManagerAddress": "a", "Resources": {"CPU": 4.0, "GPU": 1.0}},
        {"Alive": True, "NodeManagerAddress": "b", "Resources": {"CPU": 1.0}},
        {"Alive": False, "NodeManagerAddress": "c", "Resources": {"CPU": 8.0}},
    ]

    assert hosts_and_slots(nodes, 2, None) == {"a": 2}
    assert hosts_and_slots(nodes, 1, 1) == {"a": 1}


def test_interfaces():
    assert nics_to_env_var({"eth1", "eth0"}) == {
        "HOROVOD_GLOO_IFACE": "eth0,eth1",
        "NCCL_SOCKET_IFNAME": "eth0,eth1",
    }
    assert detect_nics(MiniSettings(nics={"ib0"}), ["a"]) == {"ib0"}
    assert detect_nics(MiniSettings(), ["a"])


def test_gpus_default_to_one_if_they_are_wanted():
    assert BaseParams(use_gpu=True).gpus_per_worker == 1
    assert BaseParams().gpus_per_worker == 0
