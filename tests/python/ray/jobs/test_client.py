"""A driver that is connected through ray://, outside the cluster."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import ray
from ray.util.client.ray_client_helpers import ray_start_client_server
from horovod.ray import RayExecutor

def total():
    import horovod.torch as hvd
    hvd.init()
    return sum(hvd.allgather_object(hvd.rank() + 1))

def fail():
    import horovod.torch as hvd
    hvd.init()
    if hvd.rank() == 1:
        raise KeyError("label")
    hvd.barrier()

options = {"address": "local", "num_cpus": 2, "include_dashboard": False}
with ray_start_client_server(ray_init_kwargs=options):
    executor = RayExecutor(RayExecutor.create_settings(timeout_s=120), num_workers=2)
    executor.start()
    print("totals", executor.run(total), ray.get(executor.run_remote(total)))
    try:
        executor.run(fail)
    except KeyError:
        print("the cause came through")
    print("single", executor.execute_single(lambda executable: executable))
    executor.shutdown()
    elastic = RayExecutor(RayExecutor.create_settings(timeout_s=120), min_workers=2, max_workers=2)
    elastic.start()
    print("elastic", elastic.run(total))
    elastic.shutdown()
"""


@pytest.mark.soak
def test_an_executor_works_for_a_client(tmp_path):
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}

    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
    )

    assert "totals [3, 3] [3, 3]" in ended.stdout, ended.stdout + ended.stderr
    assert "the cause came through" in ended.stdout, ended.stdout + ended.stderr
    assert "single None" in ended.stdout, ended.stdout + ended.stderr
    assert "elastic [3, 3]" in ended.stdout, ended.stdout + ended.stderr
