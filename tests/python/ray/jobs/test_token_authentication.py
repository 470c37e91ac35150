"""A cluster that Ray protects with a token, as a local ray.init() does by itself."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
import ray
from horovod.ray import RayExecutor

ray.init(
    address="local",
    num_cpus=2,
    include_dashboard=False,
    object_store_memory=100 * 1024 * 1024,
    log_to_driver=False,
)

def total():
    import horovod.torch as hvd
    hvd.init()
    return sum(hvd.allgather_object(hvd.rank() + 1))

executor = RayExecutor(RayExecutor.create_settings(timeout_s=120), num_workers=2)
executor.start()
print("mode", os.environ.get("RAY_AUTH_MODE"), "totals", executor.run(total))
executor.shutdown()
"""


@pytest.mark.slow
def test_an_executor_works_with_a_token(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    environment |= {"HOME": str(tmp_path), "RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
    environment.pop("RAY_ADDRESS", None)
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray/auth_token").write_text("0123456789abcdef0123456789abcdef")

    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert "mode token totals [3, 3]" in ended.stdout, ended.stdout + ended.stderr
