"""What jobs on stand-in GPUs (tests/standins) need, and what their timelines say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

STANDINS = Path(__file__).resolve().parents[2] / "standins"
BUILT = STANDINS.parents[1] / "build" / "release" / "standins"
PROGRAMS = Path(__file__).parent / "gpu"
LIMIT_SECONDS = 240  # some 10 on a quiet machine
KINDS = ("ALLREDUCE", "ALLGATHER", "BROADCAST", "ALLTOALL", "REDUCESCATTER", "ADASUM", "ERROR")

needs_standins = pytest.mark.skipif(
    not (BUILT / "libcuda_standin.so").exists(), reason="the stand-ins are not built: ./dev build"
)


def make_torch_backend() -> None:
    """Make the CUDA backend for the CPU build of torch: every rank loads it."""
    subprocess.run([sys.executable, str(STANDINS / "torch_cuda.py")], check=True, timeout=LIMIT_SECONDS)


def standin_variables(nccl: str = "libnccl_standin.so") -> dict[str, str]:
    """Return the settings of a rank on stand-in GPUs."""
    return {
        "PYTHONPATH": str(STANDINS),
        "HOROVOD_CUDA_LIB": str(BUILT / "libcuda_standin.so"),
        "HOROVOD_NCCL_LIB": str(BUILT / nccl),
    }


def activities(timeline: Path) -> list[list[str]]:
    """Return what the timeline says of each operation: its kind, then its activities, one after the other."""
    operations: list[list[str]] = []
    current: dict[int, list[str]] = {}
    for event in json.loads(timeline.read_text()):
        if event["ph"] != "B" or event["name"].startswith("NEGOTIATE_"):
            continue
        if event["name"] in KINDS:
            current[event["pid"]] = []
            operations.append(current[event["pid"]])
        current[event["pid"]].append(event["name"])
    return operations
