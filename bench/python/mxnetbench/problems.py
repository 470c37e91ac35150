"""The network that is trained, and one step of it. Knows nothing of Horovod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import mxnet as mx
from mxnet import autograd, gluon

_BATCH: Final = 32


class Cnn:
    """A small convolutional network on made-up pictures, the same weights on every rank."""

    name = "CNN"

    def __init__(self, rank: int) -> None:
        """Make the network and this rank's data."""
        mx.random.seed(1)
        self.net = gluon.nn.HybridSequential()
        self.net.add(
            gluon.nn.Conv2D(32, 3, activation="relu"),
            gluon.nn.Conv2D(64, 3, strides=2, activation="relu"),
            gluon.nn.Conv2D(64, 3, activation="relu"),
            gluon.nn.MaxPool2D(2),
            gluon.nn.Dense(128, activation="relu"),
            gluon.nn.Dense(10),
        )
        self.net.initialize(mx.init.Xavier())
        self.net.hybridize(static_alloc=True, static_shape=True)
        self.net(mx.nd.zeros((_BATCH, 3, 32, 32))).wait_to_read()
        mx.random.seed(2 + rank)
        self._data = mx.nd.random.uniform(shape=(_BATCH, 3, 32, 32))
        self._labels = mx.nd.floor(mx.nd.random.uniform(0, 10, shape=(_BATCH,)))
        self._loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def stepper(self, trainer: Any) -> Callable[[int], None]:
        """Return what trains so many steps."""

        def run(operations: int) -> None:
            for _ in range(operations):
                with autograd.record():
                    loss = self._loss(self.net(self._data), self._labels)
                loss.backward()
                trainer.step(_BATCH)
            mx.nd.waitall()

        return run

    def norm(self) -> float:
        """Return a number that tells weights apart."""
        return float(sum((one.data() ** 2).sum().asscalar() for one in self.net.collect_params().values()))
