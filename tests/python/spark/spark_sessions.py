"""Real Spark sessions for tests, one at a time: `local[N]`, or executors of their own on this machine."""

import os
import sys
from contextlib import contextmanager

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

# The daemon of an executor's Python workers is its JVM's child: every executor is a container, as under YARN.
CONTAINERS = 'import os\nos.environ.setdefault("CONTAINER_ID", f"container_{os.getppid()}")\n'


@contextmanager
def session(master, **settings):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("horovod tests")
    fixed = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
    }
    for name, value in {**fixed, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def containers(folder, executors=2):
    """A session whose executors, one slot each, are different hosts for Horovod."""
    (folder / "sitecustomize.py").write_text(CONTAINERS)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    with session(f"local-cluster[{executors},1,1024]", **{"spark.executorEnv.PYTHONPATH": path}) as spark:
        yield spark
