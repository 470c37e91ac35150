"""Images per second on made-up data, and the share of the speed without communication.

horovodrun -np 2 python examples/mxnet/synthetic_benchmark.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon.model_zoo import vision

import horovod.mxnet as hvd


def make_network(model: str) -> tuple[gluon.Block, int]:
    if model != "small":
        return vision.get_model(model, classes=1000), 224
    network = gluon.nn.HybridSequential()
    network.add(
        gluon.nn.Conv2D(32, 3, activation="relu"),
        gluon.nn.Conv2D(64, 3, strides=2, activation="relu"),
        gluon.nn.GlobalAvgPool2D(),
        gluon.nn.Dense(1000),
    )
    return network, 32


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="small", help="small, or one of gluon's: resnet50_v1, vgg16, ...")
    parser.add_argument("--batch-size", type=int, default=16, help="of one worker")
    parser.add_argument("--warm-up", type=int, default=3, help="steps")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()

    hvd.init()
    network, edge = make_network(arguments.model)
    network.initialize(mx.init.Xavier())
    network.hybridize(static_alloc=True, static_shape=True)
    hvd.broadcast_parameters(network.collect_params(), root_rank=0)
    images = mx.nd.random.uniform(shape=(arguments.batch_size, 3, edge, edge))
    labels = mx.nd.zeros((arguments.batch_size,))
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    network(images).wait_to_read()
    alone = gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.01}, kvstore=None)
    together = hvd.DistributedTrainer(network.collect_params(), "sgd", {"learning_rate": 0.01})

    def rate_of(trainer: gluon.Trainer, barrier: Callable[[], None]) -> float:
        begin = 0.0
        for step in range(-arguments.warm_up, arguments.steps):
            if step == 0:
                mx.nd.waitall()
                barrier()
                begin = time.perf_counter()
            with autograd.record():
                loss = loss_of(network(images), labels)
            loss.backward()
            trainer.step(arguments.batch_size)
        mx.nd.waitall()
        return arguments.steps * arguments.batch_size / (time.perf_counter() - begin)

    plain, ours = rate_of(alone, hvd.barrier), rate_of(together, hvd.barrier)
    plain, ours = hvd.allreduce(mx.nd.array([plain, ours]), name="rates").asnumpy().tolist()
    if hvd.rank() == 0:
        print(f"images/s of one worker: {ours:.1f}, of all {hvd.size()}: {ours * hvd.size():.1f}")
        print(f"share of the speed without communication: {ours / plain:.3f}")


if __name__ == "__main__":
    main()
