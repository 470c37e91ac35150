"""The program of a compute job on Spark: every rank is a worker of a tf.data service.

spark-submit --py-files ... compute_worker.py, or: python -m horovod.spark.tensorflow.compute_worker FILE
"""

from __future__ import annotations

import argparse

from horovod.spark.runner import run


def main(dispatchers: int, dispatcher_side: str, configfile: str, timeout: int) -> None:
    """Run a worker on every slot of the Spark application until somebody shuts the service down.

    Rank 0 writes the file; the training job must see it.
    """
    # Imported by the ranks, which have TensorFlow; the driver need not.
    run(_worker, (dispatchers, dispatcher_side, configfile, timeout))


def _worker(dispatchers: int, dispatcher_side: str, configfile: str, timeout: int) -> None:
    from horovod.tensorflow.data import compute_worker  # noqa: PLC0415

    compute_worker.main(dispatchers, dispatcher_side, configfile, timeout)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m horovod.spark.tensorflow.compute_worker")
    parser.add_argument("configfile", help="where to write how the training job finds this one")
    parser.add_argument("--dispatchers", type=int, default=1, help="number of dispatchers (1)")
    parser.add_argument(
        "--dispatcher-side",
        choices=["compute", "training"],
        default="compute",
        help="who runs them (compute)",
    )
    parser.add_argument("--timeout", type=int, default=60, help="seconds to wait for each other (60)")
    return parser.parse_args()


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    SparkSession.builder.appName("horovod compute workers").getOrCreate()
    given = _parse_arguments()
    main(given.dispatchers, given.dispatcher_side, given.configfile, given.timeout)
