"""The GPU of a rank, or none, before a framework takes all of them."""

from __future__ import annotations

import importlib

from horovod.spark.common._gpus import gpu_of_rank

from ._flavor import Flavor


def choose_devices(flavor: Flavor, local_rank: int, *, use_gpu: bool) -> None:
    """Let the framework see this rank's GPU alone."""
    if flavor.backend in (None, "tensorflow"):
        tf = importlib.import_module("tensorflow")
        gpus = tf.config.list_physical_devices("GPU")
        if gpus:
            tf.config.set_visible_devices(
                [gpus[gpu_of_rank(local_rank, len(gpus))]] if use_gpu else [], "GPU"
            )
    elif flavor.backend == "torch":
        torch = importlib.import_module("torch")
        if use_gpu and torch.cuda.is_available():
            torch.cuda.set_device(gpu_of_rank(local_rank, torch.cuda.device_count()))
