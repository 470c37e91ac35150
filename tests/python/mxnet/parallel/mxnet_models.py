"""Small models and data that are the same on every rank, and what training makes of them alone."""

from __future__ import annotations

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

FEATURES, CLASSES, BATCH = 6, 3, 12


def make_batches(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return batches for all ranks together; BATCH divides by 1, 2, 3 and 4."""
    generator = np.random.RandomState(1)
    return [
        (
            generator.rand(BATCH, FEATURES).astype("float32"),
            generator.randint(0, CLASSES, BATCH).astype("float32"),
        )
        for _ in range(count)
    ]


def part_of(batch, rank, size):
    """Return this rank's part of a batch, as arrays."""
    rows = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    return [mx.nd.array(values[rows]) for values in batch]


def make_net(*, deferred: bool = False, hybridized: bool = False):
    """Return a perceptron; deferred: its shapes are known after the first forward pass."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(8, activation="relu", in_units=0 if deferred else FEATURES))
    net.add(gluon.nn.Dense(CLASSES, in_units=0 if deferred else 8))
    net.initialize(mx.init.Xavier())
    if hybridized:
        net.hybridize()
    return net


def set_same_weights(net) -> None:
    """Give the parameters values that do not depend on the rank."""
    generator = np.random.RandomState(2)
    for name in sorted(net.collect_params()):
        parameter = net.collect_params()[name]
        parameter.set_data(mx.nd.array(generator.rand(*parameter.shape) - 0.5))


def values(net) -> list[np.ndarray]:
    params = net.collect_params()
    return [params[name].data().asnumpy() for name in sorted(params)]


def train(net, trainer, batches, rank, size) -> None:
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for batch in batches:
        data, label = part_of(batch, rank, size)
        with autograd.record():
            loss = loss_of(net(data), label)
        loss.backward()
        trainer.step(len(data))
