"""What RayExecutor and its parts decide without a cluster."""

import importlib
import inspect
import stat
import time

import pytest

from horovod.ray import BaseHorovodWorker, ElasticRayExecutor, RayExecutor
from horovod.ray._elastic_engine import node_hosts
from horovod.ray._slots import NotEnoughSlotsError, check_bundles, slots
from horovod.ray.adapter import BaseParams
from horovod.ray.discovery import hosts_and_slots
from horovod.ray.elastic_v2 import ElasticParams, TestDiscovery
from horovod.ray.runner import Coordinator, MiniSettings
from horovod.ray.utils import detect_nics, nics_to_env_var
from horovod.runner.common.util.timeout import TimeoutException


def coordinator_of(*nodes):
    coordinator = Coordinator(MiniSettings())
    for rank, node in enumerate(nodes):
        coordinator.register(f"host-of-{node}", node, rank)
    return coordinator


def test_workers_must_fit_into_the_bundles_of_their_group():
    bundles = [{"CPU": 2.0}, {"CPU": 3.0, "GPU": 1.0}]

    check_bundles("RayExecutor", 2, {"CPU": 2.0, "GPU": 0.0}, bundles)
    with pytest.raises(
        NotEnoughSlotsError,
        match=r"expected room for 3 workers with 2 CPU, 0 GPU each, the placement group has room for 2\. "
        r"Its bundles have 2 CPU; 3 CPU, 1 GPU",
    ):
        check_bundles("RayExecutor", 3, {"CPU": 2.0, "GPU": 0.0}, bundles)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"max_workers": 3}, "min_workers must be 1 or more"),
        ({"min_workers": 1, "num_workers": 2}, "Both `min_workers` and `num_workers` provided..*not both"),
        ({"min_workers": 3, "max_workers": 2}, r"max_workers must be min_workers \(3\) or more, got 2"),
        ({"num_workers": 1, "gpus_per_worker": 1}, "use_gpu is not set"),
        ({"num_workers": 1, "use_gpu": True, "gpus_per_worker": 0}, "must be 1 or more"),
    ],
)
def test_parameters_that_contradict_each_other(arguments, text):
    with pytest.raises(ValueError, match=text):
        RayExecutor(MiniSettings(), **arguments)


@pytest.mark.parametrize(("arguments", "elastic"), [({"min_workers": 1}, True), ({"num_workers": 1}, False)])
def test_the_settings_say_whether_the_job_is_elastic(arguments, elastic):
    settings = RayExecutor.create_settings()

    RayExecutor(settings, **arguments)

    assert settings.elastic is elastic


def test_elastic_settings_become_limits():
    executor = RayExecutor(
        MiniSettings(nics={"eth1"}),
        min_workers=2,
        max_workers=5,
        reset_limit=3,
        cooldown_range=[1, 9],
        elastic_timeout=7,
    )
    settings = ElasticRayExecutor.create_settings(min_num_proc=1, max_num_proc=4, reset_limit=0, timeout_s=9)

    assert isinstance(executor.params, ElasticParams)
    assert executor.params.limits(executor.settings).words() == [
        *("-np", "2", "--min-np", "2", "--max-np", "5", "--reset-limit", "3", "--elastic-timeout", "7"),
        *("--blacklist-cooldown-range", "1", "9", "--network-interfaces", "eth1"),
    ]
    assert (settings.min_num_proc, settings.max_num_proc, settings.reset_limit) == (1, 4, 0)
    assert (settings.elastic_timeout, settings.timeout_s) == (600, 9)
    assert settings.ssh_identity_file.endswith("/ray_bootstrap_key.pem")
    with pytest.warns(DeprecationWarning, match="min_np is deprecated, use min_num_proc"):
        assert ElasticRayExecutor.create_settings(min_np=3).min_num_proc == 3


def test_elastic_executors_refuse_what_they_cannot_do():
    executor = RayExecutor(MiniSettings(), min_workers=1)

    with pytest.raises(RuntimeError, match=r"RayExecutor.run: call start\(\) first"):
        executor.run(print)
    executor.start()
    with pytest.raises(NotImplementedError, match="no reference per rank"):
        executor.run_remote(print)
    with pytest.raises(NotImplementedError, match="no workers between two runs"):
        executor.execute_single(print)
    executor.shutdown()
    with pytest.raises(
        TypeError, match=r"settings must come from ElasticRayExecutor.create_settings, got None"
    ):
        ElasticRayExecutor(None)


def test_nodes_with_one_address_are_hosts_of_their_own():
    nodes = [
        {"Alive": True, "NodeID": "abcdef0123", "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 5}},
        {"Alive": True, "NodeID": "0123456789", "NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 2}},
        {"Alive": True, "NodeID": "1111111111", "NodeManagerAddress": "10.0.0.2", "Resources": {"CPU": 1}},
        {"Alive": False, "NodeID": "2222222222", "NodeManagerAddress": "10.0.0.3", "Resources": {"CPU": 8}},
    ]

    assert node_hosts(nodes, BaseParams(cpus_per_worker=2)) == {
        "10.0.0.1/abcdef01": ("abcdef0123", 2),
        "10.0.0.1/01234567": ("0123456789", 1),
    }


def test_the_discovery_for_tries_stays_between_its_limits(monkeypatch, caplog):
    nodes = [
        {"Alive": True, "NodeID": name, "NodeManagerAddress": name, "Resources": {"CPU": 1}}
        for name in "abcd"
    ]
    monkeypatch.setattr("horovod.ray.discovery.ray.nodes", lambda: nodes)
    discovery = TestDiscovery(min_hosts=2, max_hosts=3, change_frequency_s=0)

    counts = {len(discovery.find_available_hosts_and_slots()) for _ in range(200)}

    assert counts == {2, 3}
    TestDiscovery(1, 2, 3, _graceful=False)
    assert "ends no machines" in caplog.text


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


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("horovod.ray", "RayExecutor BaseHorovodWorker ElasticRayExecutor"),
        ("horovod.ray.adapter", "Adapter BaseParams"),
        ("horovod.ray.driver_service", "detect_nics"),
        ("horovod.ray.elastic", "ElasticRayExecutor RayHostDiscovery TestDiscovery"),
        ("horovod.ray.elastic_v2", "ElasticAdapter ElasticParams RayHostDiscovery TestDiscovery"),
        ("horovod.ray.ray_logger", "configure log"),
        ("horovod.ray.runner", "BaseHorovodWorker Coordinator ElasticAdapter ElasticParams MiniSettings"),
        ("horovod.ray.runner", "RayExecutor StaticAdapter StaticParams"),
        ("horovod.ray.strategy", "ColocatedStrategy PGStrategy create_placement_group"),
        ("horovod.ray.utils", "detect_nics map_blocking nics_to_env_var"),
        ("horovod.ray.worker", "BaseHorovodWorker"),
    ],
)
def test_names_that_programs_import(module, names):
    home = importlib.import_module(module)

    assert [name for name in names.split() if not callable(getattr(home, name, None))] == []


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
