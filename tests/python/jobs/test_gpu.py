"""Jobs on stand-in GPUs (tests/standins): the device path from torch tensors to NCCL and back."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest
from job import Ended, clean_environment, horovodrun, run
from standins import (
    BUILT,
    LIMIT_SECONDS,
    PROGRAMS,
    activities,
    make_torch_backend,
    needs_standins,
    standin_variables,
)

pytestmark = needs_standins


@pytest.fixture(scope="module", autouse=True)
def torch_backend() -> None:
    make_torch_backend()


def gpu_job(
    program: str,
    *words: str,
    launch: Sequence[str] = ("-np", "2"),
    nccl: str = "libnccl_standin.so",
    **variables: str,
) -> Ended:
    """Run a program of the folder gpu on stand-in GPUs, one for each rank."""
    return run(
        [horovodrun(), *launch, sys.executable, str(PROGRAMS / program), *words],
        LIMIT_SECONDS,
        STANDIN_DEVICES="4",
        **standin_variables(nccl),
        **variables,
    )


# What real ranks must not do hangs, or is refused: else the jobs below would prove little.
@pytest.mark.parametrize(
    ("rules", "launch_us"), [("mismatches", "0"), ("launches", str(3600 * 1_000_000)), ("events", "0")]
)
def test_the_standins_are_strict(rules: str, launch_us: str) -> None:
    ended = run(
        [sys.executable, str(PROGRAMS / "standin_rules.py"), rules],
        LIMIT_SECONDS,
        STANDIN_NCCL_LAUNCH_US=launch_us,
        **standin_variables(),
    )

    assert ended.code == 0, ended.output


def test_every_operation_runs_by_nccl(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.json"
    ended = gpu_job("operations.py", HOROVOD_TIMELINE=str(timeline), HOROVOD_HIERARCHICAL_ALLREDUCE="1")

    assert ended.code == 0, ended.output
    assert ended.output.count("OPERATIONS RIGHT") == 2, ended.output
    said = "no effect on GPU tensors: all members are on one host (process set 0)"
    assert ended.output.count(f"HOROVOD_HIERARCHICAL_ALLREDUCE: {said}") == 1, ended.output
    assert "host memory" not in ended.output, ended.output
    assert "KERNELS 0" not in ended.output, ended.output
    assert "NCCL_BCAST" in timeline.read_text()
    # The communicator is made inside the first operation, before NCCL runs it; later ones have it.
    first, *others = [names for names in activities(timeline) if "NCCL" in "".join(names)]
    assert first == ["ALLREDUCE", "INIT_NCCL", "NCCL_ALLREDUCE"], first
    assert ["ALLREDUCE", "NCCL_ALLREDUCE"] in others, others
    # A group of small tensors is packed.
    packed = ["ALLREDUCE", "MEMCPY_IN_FUSION_BUFFER", "NCCL_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER"]
    assert packed in others, others


def test_every_operation_runs_through_host_memory_where_nccl_is_missing(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.json"
    ended = gpu_job("operations.py", nccl="libnccl_missing.so", HOROVOD_TIMELINE=str(timeline))

    assert ended.code == 0, ended.output
    assert ended.output.count("OPERATIONS RIGHT") == 2, ended.output
    assert ended.output.count("travel through host memory") == 1, ended.output
    assert "GPU tensors of process set 0 travel" in ended.output, ended.output
    assert "pip install nvidia-nccl-cu12" in ended.output, ended.output
    assert ["ALLREDUCE", "STAGING_ALLREDUCE"] in activities(timeline)
    assert "NCCL" not in timeline.read_text()


def test_completion_may_be_left_to_the_streams() -> None:
    # And by NCCL alone: this driver takes no kernels of ours.
    ended = gpu_job(
        "operations.py", HOROVOD_ENABLE_ASYNC_COMPLETION="1", STANDIN_FAIL="cuModuleLoadData:1:222"
    )

    assert ended.code == 0, ended.output
    assert ended.output.count("OPERATIONS RIGHT") == 2, ended.output
    assert ended.output.count("KERNELS 0") == 2, ended.output


def test_nccl_may_launch_in_a_thread_of_its_own() -> None:
    ended = gpu_job("operations.py", HOROVOD_NUM_NCCL_STREAMS="2", STANDIN_NCCL_LAUNCH_US="1000")

    assert ended.code == 0, ended.output
    assert ended.output.count("OPERATIONS RIGHT") == 2, ended.output


def test_training_with_late_streams_is_that_of_one_process(tmp_path: Path) -> None:
    timeline = tmp_path / "timeline.json"
    ended = gpu_job("training.py", STANDIN_ITEM_DELAY_US="300", HOROVOD_TIMELINE=str(timeline))

    assert ended.code == 0, ended.output
    assert ended.output.count("TRAINING RIGHT") == 2, ended.output
    assert ["REDUCESCATTER", "NCCL_REDUCESCATTER"] in activities(timeline)  # of the sharded optimizer


def test_what_the_driver_refuses_is_told_to_all() -> None:
    ended = gpu_job("failures.py")

    assert ended.code == 0, ended.output
    assert ended.output.count("FAILURES TOLD") == 2, ended.output


def test_streams_and_communicators_follow_what_is_used() -> None:
    ended = gpu_job("streams.py", HOROVOD_ENABLE_ASYNC_COMPLETION="1", HOROVOD_NUM_NCCL_STREAMS="2")

    assert ended.code == 0, ended.output
    assert ended.output.count("STREAMS RIGHT") == 2, ended.output


def test_ranks_agree_on_the_number_of_streams() -> None:
    ended = gpu_job("streams.py", "uneven")

    assert ended.code == 0, ended.output
    assert ended.output.count("STREAMS RIGHT") == 2, ended.output


def test_ranks_that_share_a_device_are_told() -> None:
    # The program as it runs on real GPUs (test_gpu_hardware.py), where nobody can look into the driver.
    ended = gpu_job(
        "operations.py", HOROVOD_NUM_NCCL_STREAMS="2", STANDIN_ONE_BUS_ID="1", HVD_GPU_HARDWARE="rehearsal"
    )

    assert ended.code == 0, ended.output
    assert ended.output.count("share the device 0000:01:00.0") == 1, ended.output


def test_an_elastic_job_goes_on_when_a_rank_is_killed(tmp_path: Path) -> None:
    launch = ("-np", "3", "--min-np", "2", "-H", "localhost:3")
    ended = gpu_job("elastic.py", str(tmp_path / "killed"), launch=launch)

    assert ended.code == 0, ended.output
    assert "ELASTIC RIGHT 0 of" in ended.output, ended.output
    assert "signal 9" in ended.output, ended.output


def test_an_elastic_job_goes_on_after_an_error_of_nccl(tmp_path: Path) -> None:
    launch = ("-np", "2", "--min-np", "2", "-H", "localhost:2")
    error = str(tmp_path / "error")
    ended = gpu_job("elastic.py", str(tmp_path / "asked"), launch=launch, STANDIN_NCCL_ERROR_FILE=error)

    assert ended.code == 0, ended.output
    assert ended.output.count("ELASTIC RIGHT") == 2, ended.output
    assert "NCCL async error: unhandled system error" in ended.output, ended.output


def test_an_error_of_nccl_is_told_to_all(tmp_path: Path) -> None:
    ended = gpu_job("error.py", STANDIN_NCCL_ERROR_FILE=str(tmp_path / "error"))

    assert ended.code == 0, ended.output
    assert ended.output.count("TOLD") == 2, ended.output


def test_an_error_of_nccl_ends_what_a_stream_waits_for(tmp_path: Path) -> None:
    ended = gpu_job(
        "error.py",
        HOROVOD_ENABLE_ASYNC_COMPLETION="1",
        STANDIN_NCCL_ERROR_FILE=str(tmp_path / "error"),
        STANDIN_NCCL_HANG="1",
    )

    assert ended.code == 0, ended.output
    assert ended.output.count("TOLD") == 2, ended.output


# As real peers of a dead one, NCCL itself may say nothing; or it says that somebody has gone, not who.
@pytest.mark.parametrize(
    ("silent", "delay_us", "launch_us"),
    [("1", "0", "0"), ("0", "0", "0"), ("1", "50000", "0"), ("1", "0", "300000")],
)
def test_a_dead_rank_is_named(silent: str, delay_us: str, launch_us: str) -> None:
    expect_that_a_death_is_told(
        STANDIN_NCCL_SILENT_DEATH=silent, STANDIN_ITEM_DELAY_US=delay_us, STANDIN_NCCL_LAUNCH_US=launch_us
    )


def test_a_dead_rank_is_named_to_who_waits_for_a_stream() -> None:
    expect_that_a_death_is_told(STANDIN_NCCL_SILENT_DEATH="1", HOROVOD_ENABLE_ASYNC_COMPLETION="1")


def test_the_dead_rank_is_named_though_nccl_complains_first(tmp_path: Path) -> None:
    expect_that_a_death_is_told(STANDIN_NCCL_ERROR_FILE=str(tmp_path / "error"))


def expect_that_a_death_is_told(**variables: str) -> None:
    # Without a launcher, which would end the survivor before it says what it was told.
    common = {
        **standin_variables(),
        "HOROVOD_SIZE": "2",
        "HOROVOD_LOCAL_SIZE": "2",
        "HOROVOD_JOB_ID": f"gpu-death-{uuid.uuid4().hex}",
        "HOROVOD_GLOO_TIMEOUT_SECONDS": "120",
        **variables,
    }
    command = [sys.executable, str(PROGRAMS / "death.py")]
    ranks = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=clean_environment(**common, HOROVOD_RANK=str(rank), HOROVOD_LOCAL_RANK=str(rank)),
        )
        for rank in range(2)
    ]
    told, _ = ranks[0].communicate(timeout=LIMIT_SECONDS)
    ranks[1].communicate(timeout=LIMIT_SECONDS)

    assert ranks[0].returncode == 0, told
    assert "TOLD" in told, told


def doctor(**variables: str) -> Ended:
    return run([horovodrun(), "doctor", "--gpu"], LIMIT_SECONDS, **variables)


def test_the_doctor_sums_on_every_gpu() -> None:
    ended = doctor(
        HOROVOD_CUDA_LIB=str(BUILT / "libcuda_standin.so"),
        HOROVOD_NCCL_LIB=str(BUILT / "libnccl_standin.so"),
        STANDIN_DEVICES="3",
    )

    assert ended.code == 0, ended.output
    assert "3 ranks, by NCCL" in ended.output, ended.output
    assert "Stand-in 2 at 0000:03:00.0" in ended.output, ended.output


def test_the_doctor_says_what_a_gpu_lacks() -> None:
    ended = doctor(HOROVOD_CUDA_LIB=str(BUILT / "libcuda_standin.so"), HOROVOD_NCCL_LIB="/missing/libnccl.so")
    assert ended.code == 0, ended.output
    assert "through host memory" in ended.output, ended.output
    assert "pip install nvidia-nccl-cu12" in ended.output, ended.output

    ended = doctor(
        HOROVOD_CUDA_LIB=str(BUILT / "libcuda_standin.so"),
        HOROVOD_NCCL_LIB=str(BUILT / "libnccl_standin.so"),
        STANDIN_NCCL_VERSION="21502",
    )
    assert ended.code == 0, ended.output
    assert "libnccl_standin.so is version 2.15.2, expected 2.16.0 or newer" in ended.output, ended.output

    ended = doctor(HOROVOD_CUDA_LIB="/missing/libcuda.so")
    assert ended.code == 1, ended.output
    assert "no GPU can be used: /missing/libcuda.so" in ended.output, ended.output


@pytest.mark.parametrize("is_complete_in_streams", ["0", "1"])
def test_torch_distributed_leaves_tensors_on_the_device(tmp_path: Path, is_complete_in_streams: str) -> None:
    timeline = tmp_path / "timeline.json"
    ended = gpu_job(
        "torch_distributed.py",
        HOROVOD_TIMELINE=str(timeline),
        HOROVOD_ENABLE_ASYNC_COMPLETION=is_complete_in_streams,
    )

    assert ended.code == 0, ended.output
    assert ended.output.count("TORCH.DISTRIBUTED RIGHT") == 2, ended.output
    assert "host memory" not in ended.output, ended.output
    for activity in ("ALLREDUCE", "ALLGATHER", "BCAST", "REDUCESCATTER", "ALLTOALL"):
        assert f"NCCL_{activity}" in timeline.read_text(), activity


def test_the_handler_of_xla_reduces_on_the_device() -> None:
    ended = gpu_job("jax_handler.py", HOROVOD_ENABLE_ASYNC_COMPLETION="1")

    assert ended.code == 0, ended.output
    assert ended.output.count("HANDLER RIGHT") == 2, ended.output
