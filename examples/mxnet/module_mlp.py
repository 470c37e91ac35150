"""A perceptron with the module API.

horovodrun -np 2 python examples/mxnet/module_mlp.py
"""

from __future__ import annotations

import argparse
import logging

import mxnet as mx
from pictures import CLASSES, EDGE, make_pictures

import horovod.mxnet as hvd


def make_symbol() -> mx.sym.Symbol:
    layer = mx.sym.flatten(mx.sym.Variable("data"))
    for index, width in enumerate((128, 64)):
        layer = mx.sym.FullyConnected(layer, num_hidden=width, name=f"hidden{index}")
        layer = mx.sym.Activation(layer, act_type="relu")
    layer = mx.sym.FullyConnected(layer, num_hidden=CLASSES, name="output")
    return mx.sym.SoftmaxOutput(layer, name="softmax")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32, help="of one worker")
    arguments = parser.parse_args()

    hvd.init()
    logging.basicConfig(level=logging.INFO if hvd.rank() == 0 else logging.ERROR)
    images, labels = make_pictures(2048, seed=1)
    mine = slice(hvd.rank(), None, hvd.size())  # every worker has its own part
    train = mx.io.NDArrayIter(images[mine], labels[mine], arguments.batch_size, shuffle=True)
    test = mx.io.NDArrayIter(*make_pictures(512, seed=2), arguments.batch_size)

    module = mx.mod.Module(make_symbol(), context=mx.cpu())
    module.bind(train.provide_data, train.provide_label)
    module.init_params(mx.init.Xavier())
    weights, states = module.get_params()
    hvd.broadcast_parameters(weights, root_rank=0)
    hvd.broadcast_parameters(states, root_rank=0)
    module.set_params(weights, states)

    optimizer = mx.optimizer.create(
        "sgd", learning_rate=0.05 * hvd.size(), momentum=0.9, rescale_grad=1.0 / arguments.batch_size
    )
    module.fit(
        train,
        kvstore=None,  # the workers exchange gradients themselves
        optimizer=hvd.DistributedOptimizer(optimizer),
        num_epoch=arguments.epochs,
    )
    accuracy = module.score(test, mx.metric.Accuracy())[0][1]
    if hvd.rank() == 0:
        print(f"{hvd.size()} workers, pictures of {EDGE} x {EDGE}: accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
