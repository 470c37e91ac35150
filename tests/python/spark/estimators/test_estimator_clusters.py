"""The estimators on executors of their own, and through Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

PROGRAM = Path(__file__).with_name("estimator_program.py")
TIMEOUT_SECONDS = 600


needs_connect = pytest.mark.skipif(
    int(pyspark.__version__.split(".")[0]) < 4, reason="its Connect server is not in the package"
)


@pytest.mark.parametrize(
    "master", ["local-cluster[2,1,1024]", pytest.param("connect", marks=[pytest.mark.soak, needs_connect])]
)
def test_an_estimator_fits_predicts_and_is_saved(master, tmp_path):
    ended = subprocess.run(
        [sys.executable, PROGRAM, master, tmp_path],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )

    assert "RESULT rows 32 right 32 learned True" in ended.stdout, ended.stdout[-3000:] + ended.stderr[-6000:]
