"""The examples run as their texts say, and what they train learns."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[4] / "examples/ray"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def run_example(name, address, folder):
    environment = {**os.environ, "RAY_ADDRESS": address, "HOME": str(folder)}
    more = ["--storage", str(folder)] if name == "torch_trainer" else []
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "--workers", "2", *more]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=400, check=False, cwd=folder
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_every_example_is_described():
    described = (EXAMPLES / "README.md").read_text()

    assert len(PROGRAMS) == 5
    assert all(f"`{name}.py`" in described for name in PROGRAMS)


# Trainers take long to start, and test_trainer.py has one of each framework: these run in full.
@pytest.mark.parametrize(
    "name",
    [
        "executor",
        pytest.param("elastic_executor", marks=pytest.mark.soak),
        pytest.param("keras_trainer", marks=pytest.mark.soak),
        pytest.param("tensorflow_trainer", marks=pytest.mark.soak),
        pytest.param("torch_trainer", marks=pytest.mark.soak),
    ],
)
def test_the_example_learns(name, cluster, tmp_path):
    output = run_example(name, cluster.address, tmp_path)

    losses = [float(number) for number in re.findall(r"loss ([\d.]+)", output)]
    assert losses, output
    assert losses[-1] < 0.5, output
