"""The jobs of test_gpu.py on the GPUs of this machine, where it has any: `./dev test gpu`.

HVD_GPU_PYTHON names the Python of an environment with PyTorch for CUDA and this package; else that of the
tests is asked.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from job import Ended, horovodrun, run

LIMIT_SECONDS = 600
PYTHON = os.environ.get("HVD_GPU_PYTHON", sys.executable)
HERE = Path(__file__).resolve().parent


def missing() -> str:
    """Return why nothing can be tried here; empty: there are GPUs."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return str(error)
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "the driver has no devices"
    return ""


pytestmark = pytest.mark.skipif(bool(missing()), reason=f"no GPU: {missing()}")


def gpus_of_torch() -> int:
    """Return how many GPUs the PyTorch of that Python can use."""
    ask = "import torch; print(torch.cuda.device_count() if torch.version.cuda else 0)"
    return int(subprocess.run([PYTHON, "-c", ask], check=True, capture_output=True, text=True).stdout)


def hardware_job(program: str, ranks: int) -> Ended:
    standins = HERE.parents[1] / "standins"
    return run(
        [horovodrun(), "-np", str(ranks), PYTHON, str(HERE / "gpu" / program)],
        LIMIT_SECONDS,
        PYTHONPATH=str(standins),
        HVD_GPU_HARDWARE="1",
    )


def test_the_doctor_sums_on_gpus() -> None:
    ended = run([horovodrun(), "doctor", "--gpu"], LIMIT_SECONDS)

    assert ended.code == 0, ended.output
    assert "every element is right" in ended.output, ended.output


@pytest.mark.parametrize("program", ["operations.py", "training.py"])
def test_a_program_is_right_on_gpus(program: str) -> None:
    if gpus_of_torch() < 2:
        pytest.skip(f"PyTorch of {PYTHON} has fewer than two GPUs")
    ended = hardware_job(program, 2)

    assert ended.code == 0, ended.output
    assert ended.output.count(" RIGHT ") == 2, ended.output
