"""The GPU of a rank, or none, before a framework takes all of them."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from horovod.spark.common._gpus import gpu_of_rank

from ._flavor import Flavor

# For PyTorch "cpu:0" is another device than "cpu", where parameters are: copies there get no gradients.
_CPU_NAMES = {"torch": "cpu", "jax": "cpu:0"}


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


def device_scope(keras: Any, flavor: Flavor, *, use_gpu: bool) -> AbstractContextManager[Any]:
    """Return the context to train in: on the CPU if Keras would take a GPU that it must not use.

    TensorFlow has been shown no GPU then; PyTorch and JAX can only be told where to put things.
    """
    if use_gpu or flavor.backend not in _CPU_NAMES:
        return nullcontext()
    scope: AbstractContextManager[Any] = keras.device(_CPU_NAMES[flavor.backend])
    return scope
