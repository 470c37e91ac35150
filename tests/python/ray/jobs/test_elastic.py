"""Workers and nodes come and go while a function runs on real Ray: the others stay in their processes."""

import os
import signal
from pathlib import Path

import elastic_training
import pytest
import ray
from cluster_state import wait_until
from elastic_training import changes_of, train

from horovod.ray import ElasticRayExecutor, ray_logger


@pytest.fixture(autouse=True)
def training_by_value():
    ray.cloudpickle.register_pickle_by_value(elastic_training)
    yield
    ray.cloudpickle.unregister_pickle_by_value(elastic_training)


def assert_no_process_is_left(results):
    pids = [result["pid"] for result in results]
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "workers live on")


def test_a_killed_worker_is_replaced_and_the_others_stay_in_their_processes(make_executor, tmp_path):
    killed = tmp_path / "killed"

    def die_once(state, rank):
        if state.step == 5 and rank == 1 and not killed.exists():
            killed.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)

    def is_done(state):
        return changes_of(state.sizes)[:3] == [3, 2, 3] and state.sizes[-3:] == (3, 3, 3)

    executor = make_executor(min_workers=2, max_workers=3)
    executor.start()

    results = executor.run(train, args=[is_done, die_once])

    assert [result["rank"] for result in results] == [0, 1, 2]
    assert changes_of(results[0]["sizes"]) == [3, 2, 3]
    assert all(result["sizes"] == results[0]["sizes"] for result in results)
    assert [result["own_steps"][0] for result in results[:2]] == [0, 0]  # the survivors, since the beginning
    newcomer = results[2]
    assert newcomer["own_steps"] == list(range(newcomer["own_steps"][0], len(newcomer["sizes"])))
    assert newcomer["own_steps"][0] > 5
    assert len({result["weight"] for result in results}) == 1
    assert_no_process_is_left(results)


def test_a_job_uses_a_node_that_comes_and_survives_its_loss(cluster, make_executor):
    nodes = []

    # In the thread of the driver, as Ray takes signals over when it starts a node.
    def change_cluster(said):
        if said["step"] >= 3 and not nodes:
            nodes.append(cluster.add_node(num_cpus=1, object_store_memory=100 << 20))
        if said["size"] == 4 and nodes[0] in cluster.worker_nodes:
            cluster.remove_node(nodes[0], allow_graceful=False)

    def is_done(state):
        return changes_of(state.sizes)[:3] == [3, 4, 3] and state.sizes[-2:] == (3, 3)

    executor = make_executor(min_workers=1, max_workers=4)
    executor.start()
    try:
        results = executor.run(
            train, args=[is_done], kwargs={"log": ray_logger.log}, callbacks=[change_cluster]
        )
    finally:
        if nodes and nodes[0] in cluster.worker_nodes:
            cluster.remove_node(nodes[0])

    assert changes_of(results[0]["sizes"]) == [3, 4, 3]
    assert [result["own_steps"][0] for result in results] == [0, 0, 0]  # nobody was started again
    assert len({result["pid"] for result in results}) == 3
    assert_no_process_is_left(results)


def test_a_function_that_fails_everywhere_ends_the_job_at_once(make_executor):
    def fail(what):
        raise ValueError(what)

    executor = make_executor(min_workers=2, max_workers=2)
    executor.start()

    with pytest.raises(
        RuntimeError, match=r"no worker came as far as init.*raised ValueError: a mistake"
    ) as caught:
        executor.run(fail, args=["a mistake"])

    assert "a mistake" in str(caught.value.__cause__)


@pytest.mark.soak
def test_the_job_survives_the_loss_of_any_rank_and_of_all_but_one(make_executor, tmp_path):
    losses = {5: [0], 15: [2], 25: [0, 1]}  # by the steps at size 3

    def die(state, rank):
        count = sum(size == 3 for size in state.sizes)
        mark = tmp_path / f"{count}.{rank}"
        if rank in losses.get(count, ()) and state.sizes[-1] == 3 and not mark.exists():
            mark.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)

    def is_done(state):
        return sum(size == 3 for size in state.sizes) >= 40

    executor = make_executor(min_workers=1, max_workers=3)
    executor.start()

    results = executor.run(train, args=[is_done, die])

    sizes = changes_of(results[0]["sizes"])
    assert sizes[0] == sizes[-1] == 3
    assert sizes.count(3) == len(losses) + 1
    assert len({result["weight"] for result in results}) == 1
    assert_no_process_is_left(results)


@pytest.mark.soak
def test_the_older_executor_runs_on_addresses_that_a_discovery_names(cluster):
    class OneSlot:
        def find_available_hosts_and_slots(self):
            return {ray.util.get_node_ip_address(): 1}

    settings = ElasticRayExecutor.create_settings(min_num_proc=1, timeout_s=120)
    settings.discovery = OneSlot()
    logged = []
    executor = ElasticRayExecutor(settings, env_vars={"GIVEN": "here"}, override_discovery=False)
    executor.start()

    def work():
        ray_logger.log({"given": os.environ["GIVEN"]})
        return os.environ["HOROVOD_HOSTNAME"]

    assert executor.run(work, callbacks=[logged.append]) == [ray.util.get_node_ip_address()]
    assert executor.run(work) == [ray.util.get_node_ip_address()]
    assert logged == [{"given": "here"}]


class Counter:
    def __init__(self, start):
        self.count = start


@pytest.mark.soak
def test_every_worker_has_the_object_of_the_user(make_executor):
    executor = make_executor(min_workers=1, max_workers=2)
    executor.start(Counter, [5])

    def sum_of_counts(counter):
        import torch

        import horovod.torch as hvd

        hvd.init()
        return float(hvd.allreduce(torch.tensor(float(counter.count)), op=hvd.Sum))

    assert executor.execute(sum_of_counts) == [10.0, 10.0]
