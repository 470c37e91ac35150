"""Which GPU a rank of an estimator trains on."""

from __future__ import annotations

import os

from horovod.spark.task import get_available_devices

_BY_RANK_VARIABLE = "HOROVOD_SPARK_USE_LOCAL_RANK_GPU_INDEX"


def gpu_of_rank(local_rank: int, count: int) -> int:
    """Return the number of the GPU that Spark gave this task, or else of the one with the local rank.

    `count` is how many GPUs the framework sees. HOROVOD_SPARK_USE_LOCAL_RANK_GPU_INDEX=1 asks for the
    local rank even if Spark gave one: for clusters whose executors do not see the GPUs of others.
    """
    devices = get_available_devices()
    if devices and os.environ.get(_BY_RANK_VARIABLE, "0") == "0":
        try:
            number = int(devices[0])
        except ValueError as error:
            message = f"Spark gave this task the GPU {devices[0]!r}, which is not a number"
            raise ValueError(message) from error
        if number < count:
            return number
    return local_rank % count
