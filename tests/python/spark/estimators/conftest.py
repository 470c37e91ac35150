"""One Spark for all tests of a run, and what is trained on."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

# Of the environments, .venv-spark-tensorflow has TensorFlow.
os.environ.setdefault("KERAS_BACKEND", "tensorflow" if importlib.util.find_spec("tensorflow") else "torch")
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["PYSPARK_PYTHON"] = sys.executable
# Executors import the models of the tests, and with them what their files import.
HERE = Path(__file__).parent
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(HERE), str(HERE.parents[1] / "support"), os.environ.get("PYTHONPATH")])
)

import pytest
from estimator_data import xor_frame
from pyspark.sql import SparkSession

from horovod.spark.common.store import Store


@pytest.fixture(scope="session")
def spark():
    session = (
        SparkSession.builder.master("local[2]")
        .appName("estimators")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures", "3")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def xor(spark):
    return xor_frame(spark)


@pytest.fixture
def store(tmp_path):
    return Store.create(str(tmp_path / "store"))
