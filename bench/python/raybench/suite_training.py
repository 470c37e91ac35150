"""The CNN under horovodrun, inside HorovodTrainer and inside Ray's TorchTrainer, one after the other."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

from horovod.ray import HorovodTrainer
from raybench import cnn


def _under_horovodrun(steps: int, workers: int) -> float:
    horovodrun = str(Path(sys.executable).with_name("horovodrun"))
    command = [horovodrun, "-np", str(workers), sys.executable, "-m", "raybench.cnn", str(steps)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    return float(output.rsplit("speed", 1)[1])


def _inside(trainer: type, function: Any, steps: int, workers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        result = trainer(
            lambda: function(steps),
            scaling_config=ScalingConfig(num_workers=workers),
            run_config=RunConfig(storage_path=folder),
        ).fit()
    return float(result.return_value)


def measure(steps: int, rounds: int, workers: int) -> dict[str, float]:
    """Return the best images per second of each, over rounds in which each has its turn."""
    contestants = {
        "horovodrun": lambda: _under_horovodrun(steps, workers),
        "HorovodTrainer": lambda: _inside(HorovodTrainer, cnn.with_horovod, steps, workers),
        "TorchTrainer": lambda: _inside(TorchTrainer, cnn.with_ddp, steps, workers),
    }
    best = dict.fromkeys(contestants, 0.0)
    for _ in range(rounds):
        for name, run in contestants.items():
            best[name] = max(best[name], run())
    return best
