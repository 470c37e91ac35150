"""The module API: DistributedOptimizer, and broadcast_parameters for both kinds of models."""

from __future__ import annotations

import pickle

import mxnet as mx
import numpy as np
import pytest
from mxnet_cases import assert_same
from mxnet_models import BATCH, CLASSES, FEATURES, make_batches, make_net, values

import horovod.mxnet as hvd

STEPS = 4


def symbol():
    hidden = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="hidden")
    hidden = mx.sym.Activation(hidden, act_type="tanh")
    return mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(hidden, num_hidden=CLASSES, name="output"), name="softmax"
    )


def weights() -> dict[str, mx.nd.NDArray]:
    shapes, _, _ = symbol().infer_shape(data=(1, FEATURES))
    generator = np.random.RandomState(3)
    return {
        name: mx.nd.array(generator.rand(*shape) - 0.5)
        for name, shape in zip(symbol().list_arguments(), shapes, strict=True)
        if name not in ("data", "softmax_label")
    }


def fit(optimizer, rank, size, root=None):
    """Train as Module.fit does, and return the parameters."""
    rows = BATCH // size
    module = mx.mod.Module(symbol(), context=mx.cpu())
    module.bind([("data", (rows, FEATURES))], [("softmax_label", (rows,))])
    module.init_params(arg_params=weights(), allow_missing=False)
    if root is not None:
        arguments, auxiliary = module.get_params()
        hvd.broadcast_parameters(arguments, root_rank=root)
        module.set_params(arguments, auxiliary)
    module.init_optimizer(kvstore=None, optimizer=optimizer)
    for data, label in make_batches(STEPS):
        part = slice(rank * rows, (rank + 1) * rows)
        batch = mx.io.DataBatch([mx.nd.array(data[part])], [mx.nd.array(label[part])])
        module.forward_backward(batch)
        module.update()
    return {name: array.asnumpy() for name, array in module.get_params()[0].items()}


def sgd(rows):
    return mx.optimizer.create("sgd", learning_rate=0.3, momentum=0.9, rescale_grad=1.0 / rows)


@pytest.mark.parametrize("options", [{}, {"num_groups": 2}, {"gradient_predivide_factor": 4.0}], ids=str)
def test_split_batches_train_as_the_whole_batch(options, rank, size):
    alone = fit(sgd(BATCH), 0, 1)

    together = fit(hvd.DistributedOptimizer(sgd(BATCH // size), **options), rank, size, root=0)

    for name, expected in alone.items():
        np.testing.assert_allclose(together[name], expected, rtol=1e-5, atol=1e-5)


def test_one_gradient_by_its_index(rank, size):
    optimizer = hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=1.0, wd=0.0))
    weight, gradient = mx.nd.zeros((3,)), mx.nd.full((3,), rank + 1.0)

    optimizer.update(0, weight, gradient, optimizer.create_state(0, weight))

    assert_same(weight, np.full((3,), -(size + 1) / 2))


def test_half_precision_weights_have_a_master_copy(rank, size):
    optimizer = hvd.DistributedOptimizer(mx.optimizer.SGD(learning_rate=1.0, wd=0.0, multi_precision=True))
    weight, gradient = mx.nd.zeros((3,), dtype="float16"), mx.nd.full((3,), rank + 1.0, dtype="float16")
    state = optimizer.create_state_multi_precision(0, weight)

    optimizer.update_multi_precision(0, weight, gradient, state)

    assert_same(weight, np.full((3,), -(size + 1) / 2))


def test_attributes_are_those_of_the_wrapped_optimizer(size):
    wrapped = mx.optimizer.Adam(learning_rate=0.5, rescale_grad=0.25)

    optimizer = hvd.DistributedOptimizer(wrapped, gradient_predivide_factor=2.0)
    optimizer.set_learning_rate(0.125)
    optimizer.set_lr_mult({0: 2.0})
    optimizer.set_wd_mult({0: 0.0})
    optimizer.rescale_grad *= 2

    assert isinstance(optimizer, mx.optimizer.Optimizer)
    assert wrapped.learning_rate == optimizer.learning_rate == 0.125
    factor = 2.0 / size if size > 1 else 1.0  # one rank has nothing to divide
    assert wrapped.rescale_grad == pytest.approx(0.25 * factor * 2)
    assert wrapped.lr_mult == optimizer.lr_mult == {0: 2.0}
    assert optimizer.beta1 == wrapped.beta1
    assert pickle.loads(pickle.dumps(optimizer)).beta1 == wrapped.beta1


def test_what_an_optimizer_does_not_take():
    with pytest.raises(ValueError, match="Optimizer, got str"):
        hvd.DistributedOptimizer("sgd")
    with pytest.raises(ValueError, match="num_groups"):
        hvd.DistributedOptimizer(mx.optimizer.SGD(), num_groups=-2)


@pytest.mark.parametrize("root", [0, -1])
def test_parameters_of_the_root(root, rank, size):
    root %= size
    arrays = {f"layer{index}": mx.nd.full((index + 1, 2), rank + 1) for index in range(5)}
    net = make_net()
    mx.random.seed(rank)
    net.initialize(mx.init.Normal(), force_reinit=True)

    hvd.broadcast_parameters(arrays, root_rank=root)
    hvd.broadcast_parameters(net.collect_params(), root_rank=root, prefix="net.")

    for index in range(5):
        assert_same(arrays[f"layer{index}"], np.full((index + 1, 2), root + 1.0))
    for mine, roots in zip(values(net), hvd.broadcast_object(values(net), root), strict=True):
        np.testing.assert_array_equal(mine, roots)


def test_weights_that_a_forward_pass_has_left_in_a_blocked_layout(rank, size):
    net = mx.gluon.nn.Conv2D(16, 3, in_channels=16)
    net.initialize(mx.init.Constant(rank + 1))
    net(mx.nd.ones((1, 16, 8, 8)))

    hvd.broadcast_parameters(net.collect_params(), root_rank=size - 1)

    assert net.weight.data().asnumpy().max() == size


def test_what_broadcast_parameters_does_not_take():
    with pytest.raises(ValueError, match="dict"):
        hvd.broadcast_parameters([mx.nd.ones((2,))])
    with pytest.raises(AssertionError, match="prefix"):
        hvd.broadcast_parameters({}, prefix=1)
