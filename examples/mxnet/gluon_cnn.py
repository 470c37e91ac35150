"""A small convolutional network with gluon.

horovodrun -np 2 python examples/mxnet/gluon_cnn.py
"""

from __future__ import annotations

import argparse
import time

import mxnet as mx
from mxnet import autograd, gluon
from pictures import make_pictures

import horovod.mxnet as hvd


def make_network() -> gluon.nn.HybridSequential:
    network = gluon.nn.HybridSequential()
    network.add(
        gluon.nn.Conv2D(16, 5, activation="relu"),
        gluon.nn.MaxPool2D(2),
        gluon.nn.Conv2D(32, 5, activation="relu"),
        gluon.nn.MaxPool2D(2),
        gluon.nn.Dense(64, activation="relu"),
        gluon.nn.Dense(10),
    )
    network.hybridize()
    return network


def accuracy_of(network: gluon.nn.HybridSequential, loader: gluon.data.DataLoader) -> float:
    metric = mx.metric.Accuracy()
    for data, label in loader:
        metric.update([label], [network(data)])
    return float(hvd.allreduce(mx.nd.array([metric.get()[1]]), name="accuracy").asscalar())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--images", type=int, default=2048, help="of all workers together")
    parser.add_argument("--batch-size", type=int, default=32, help="of one worker")
    parser.add_argument("--fp16", action="store_true", help="gradients travel in 16 bits")
    arguments = parser.parse_args()

    hvd.init()
    images, labels = make_pictures(arguments.images, seed=1)
    mine = slice(hvd.rank(), None, hvd.size())  # every worker has its own part
    dataset = gluon.data.ArrayDataset(images[mine], labels[mine])
    loader = gluon.data.DataLoader(dataset, arguments.batch_size, shuffle=True, last_batch="discard")
    test = gluon.data.DataLoader(gluon.data.ArrayDataset(*make_pictures(256, seed=2 + hvd.rank())), 64)

    network = make_network()
    network.initialize(mx.init.Xavier())
    hvd.broadcast_parameters(network.collect_params(), root_rank=0)  # also those that have no shape yet
    trainer = hvd.DistributedTrainer(
        network.collect_params(),
        "sgd",
        {"learning_rate": 0.05 * hvd.size(), "momentum": 0.9},
        compression=hvd.Compression.fp16 if arguments.fp16 else hvd.Compression.none,
    )
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for epoch in range(arguments.epochs):
        begin = time.perf_counter()
        for data, label in loader:
            with autograd.record():
                loss = loss_of(network(data), label)
            loss.backward()
            trainer.step(len(data))
        mx.nd.waitall()
        seconds = time.perf_counter() - begin
        accuracy = accuracy_of(network, test)
        if hvd.rank() == 0:
            print(f"epoch {epoch}: {seconds:.1f} s, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
