"""One Ray cluster for all tests, whose nodes are processes of this machine."""

import os
import shutil
import tempfile
from pathlib import Path

# Sockets lie in it, whose paths are short. Of this run alone: it meets no cluster of others.
FOLDER = tempfile.mkdtemp(prefix="hvd-ray-", dir="/tmp")
Path(FOLDER, "ray").mkdir()  # Cluster writes into it before it makes it

# Before Ray is imported: it reads them then.
os.environ["RAY_TMPDIR"] = FOLDER
os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = "0.5"
os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = "300"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import cluster_state
import pytest
import ray
from cluster_state import wait_until
from ray.cluster_utils import Cluster

from horovod.ray import RayExecutor

MEMORY = 100 * 1024 * 1024
CPUS = 3


@pytest.fixture(scope="session")
def cluster():
    options = {"num_cpus": CPUS, "object_store_memory": MEMORY, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={**options, "num_gpus": 2, "temp_dir": FOLDER})
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()
    shutil.rmtree(FOLDER, ignore_errors=True)


@pytest.fixture(autouse=True)
def all_slots_are_free_again(cluster, request):
    # Workers cannot import the modules of tests.
    for module in (request.module, cluster_state):
        ray.cloudpickle.register_pickle_by_value(module)
    yield
    for module in (request.module, cluster_state):
        ray.cloudpickle.unregister_pickle_by_value(module)
    held = getattr(request.module, "HELD_CPUS", 0)  # by an executor that the tests of a module share
    wait_until(
        lambda: ray.available_resources().get("CPU", 0) + held == ray.cluster_resources().get("CPU"),
        f"something was left behind: free are {ray.available_resources()}",
    )


@pytest.fixture
def second_node(cluster):
    """A node that the test may remove."""
    node = cluster.add_node(num_cpus=CPUS, object_store_memory=MEMORY)
    wait_until(lambda: ray.cluster_resources().get("CPU") == 2 * CPUS, "the second node does not come")
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node)
    wait_until(lambda: ray.cluster_resources().get("CPU") == CPUS, "the second node does not go")


@pytest.fixture
def make_executor(cluster):
    """Executors that end with the test."""
    made = []

    def make(**arguments):
        settings = RayExecutor.create_settings(timeout_s=120, placement_group_timeout_s=60)
        made.append(RayExecutor(settings, **arguments))
        return made[-1]

    yield make
    for executor in made:
        executor.shutdown()
