"""horovod.spark.run in a session of Spark Connect, which has no SparkContext."""

import json
import os
import subprocess
import sys

import pyspark
import pytest

SECONDS = 240

# A process of its own: it starts a server, and a process has either a classic session or one of Connect.
PROGRAM = """
import json
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").getOrCreate()
import horovod.spark
from horovod.spark.common.backend import SparkBackend

def place():
    from horovod._core.basics import HorovodBasics
    hvd = HorovodBasics()
    hvd.init()
    print("hello")
    return hvd.rank(), hvd.size(), hvd.local_size()

def fail():
    raise KeyError("the cause")

def error(function, **options):
    try:
        horovod.spark.run(function, **options)
    except Exception as error:
        return str(error)

errors = [error(fail, num_proc=1), error(place, num_proc=3)]
print(json.dumps([horovod.spark.run(place), *errors, SparkBackend().num_processes()]))
spark.stop()
"""


@pytest.mark.skipif(
    int(pyspark.__version__.split(".")[0]) < 4, reason="its Connect server is not in the package"
)
def test_connect(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

    done = subprocess.run(
        [sys.executable, program],
        check=False, capture_output=True, text=True, timeout=SECONDS, env=environment, cwd=tmp_path,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    places, cause, refusal, processes = json.loads(next(line for line in lines if line.startswith("[[[")))
    assert places == [[0, 2, 2], [1, 2, 2]]
    assert processes == 2
    assert {"[0]<stdout>:hello", "[1]<stdout>:hello"} <= set(lines)
    assert "rank 0 on host" in cause
    assert "KeyError: 'the cause'" in cause
    assert "num_proc is 3, but the Spark application has 2 task slots" in refusal
