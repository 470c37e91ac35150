"""Jobs of TensorFlow on stand-in GPUs (tests/standins), which a device plug-in brings to its CPU build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from job import Ended, horovodrun, run

ROOT = Path(__file__).resolve().parents[4]
STANDINS = ROOT / "tests" / "standins"
BUILT = ROOT / "build" / "release" / "standins"
PROGRAM = Path(__file__).parent / "gpu" / "operations.py"
LIMIT_SECONDS = 240  # some 20 on a quiet machine

pytestmark = pytest.mark.skipif(
    not (BUILT / "libcuda_standin.so").exists(), reason="the stand-ins are not built: ./dev build"
)


@pytest.fixture(scope="module", autouse=True)
def device_plugin() -> None:
    """Make the plug-in: every rank loads it."""
    subprocess.run([sys.executable, str(STANDINS / "tensorflow_gpu.py")], check=True, timeout=LIMIT_SECONDS)


def gpu_job(**variables: str) -> Ended:
    return run(
        [horovodrun(), "-np", "2", sys.executable, str(PROGRAM)],
        LIMIT_SECONDS,
        PYTHONPATH=str(STANDINS),
        HOROVOD_CUDA_LIB=str(BUILT / "libcuda_standin.so"),
        HOROVOD_NCCL_LIB=str(BUILT / "libnccl_standin.so"),
        STANDIN_DEVICES="1",
        TF_CPP_MIN_LOG_LEVEL="2",
        **variables,
    )


@pytest.mark.parametrize("is_complete_in_streams", ["0", "1"])
def test_every_operation_runs_by_nccl_in_the_stream(tmp_path: Path, is_complete_in_streams: str) -> None:
    timeline = tmp_path / "timeline.json"
    ended = gpu_job(
        HOROVOD_TENSORFLOW_GPU_KERNELS="1",
        HOROVOD_ENABLE_ASYNC_COMPLETION=is_complete_in_streams,
        HOROVOD_TIMELINE=str(timeline),
    )

    assert ended.code == 0, ended.output
    assert ended.output.count("TENSORFLOW RIGHT") == 2, ended.output
    assert "host memory" not in ended.output, ended.output
    for activity in ("ALLREDUCE", "ALLGATHER", "BCAST", "REDUCESCATTER", "ALLTOALL"):
        assert f"NCCL_{activity}" in timeline.read_text(), activity


def test_tensors_on_gpus_are_copied_by_tensorflow_where_it_tells_no_streams(tmp_path: Path) -> None:
    # As in its builds for CUDA: without kernels for GPUs the ops are placed on the CPU.
    timeline = tmp_path / "timeline.json"
    ended = gpu_job(HOROVOD_TIMELINE=str(timeline))

    assert ended.code == 0, ended.output
    assert ended.output.count("TENSORFLOW RIGHT") == 2, ended.output
    assert "NCCL" not in timeline.read_text()
