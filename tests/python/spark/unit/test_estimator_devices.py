"""Which device Keras is told to use."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from packages import need

need("pyspark", "spark")

from horovod.spark.keras._devices import device_scope
from horovod.spark.keras._flavor import Flavor


@pytest.mark.parametrize(
    ("backend", "use_gpu", "device"),
    [
        ("torch", False, "cpu"),
        ("jax", False, "cpu:0"),
        ("torch", True, None),
        ("jax", True, None),
        ("tensorflow", False, None),  # is shown no GPU
        (None, False, None),
    ],
)
def test_keras_stays_on_the_cpu_if_it_must_not_use_a_gpu(backend, use_gpu, device):
    keras = SimpleNamespace(device=nullcontext)

    with device_scope(keras, Flavor("keras", backend), use_gpu=use_gpu) as chosen:
        assert chosen == device
