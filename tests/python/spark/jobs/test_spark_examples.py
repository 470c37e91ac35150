"""The examples run as their texts say."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packages import need

EXAMPLES = Path(__file__).parents[4] / "examples/spark"
SECONDS = 300
KERAS_BACKEND = "tensorflow" if importlib.util.find_spec("tensorflow") else "torch"


def _output(name, *arguments):
    environment = {"KERAS_BACKEND": KERAS_BACKEND, **os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        check=False, capture_output=True, text=True, timeout=SECONDS, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_run_finds_the_line():
    lines = _output("run.py", "--steps", "60").splitlines()

    results = [line for line in lines if line.startswith("rank ")]
    assert [line.split(":")[0] for line in results] == ["rank 0", "rank 1"]
    assert results[0].split(":")[1] == results[1].split(":")[1]
    assert any(line.startswith("[0]<stdout>:step 50: loss") for line in lines)


@pytest.mark.soak
def test_run_elastic_finds_the_line():
    lines = _output("run_elastic.py", "--steps", "60", "--seconds-per-step", "0").splitlines()

    results = [line for line in lines if line.startswith("rank ")]
    assert [line.split(":")[0] for line in results] == ["rank 0", "rank 1"][: len(results)]
    assert len({line.split(":")[1] for line in results}) == 1
    assert any("<stdout>:step 50: loss" in line for line in lines)


@pytest.mark.parametrize("np", [pytest.param("2", marks=pytest.mark.soak), "-2"])
def test_horovod_runner(np):
    output = _output("horovod_runner.py", "--np", np, "--epochs", "2")

    assert "epoch 1: accuracy" in output
    assert "rank 0 returned 0." in output


@pytest.mark.soak
@pytest.mark.parametrize("framework", ["keras", "torch"])
def test_an_estimator_learns(framework):
    need(framework, "spark")

    lines = _output(f"{framework}_estimator.py", "--rows", "4000", "--epochs", "6").splitlines()

    losses = [float(line.split()[-1]) for line in lines if line.startswith("epoch ")]
    assert len(losses) == 6, lines
    assert losses[-1] < losses[0]
    assert any(line.startswith("mean error on ") for line in lines)
