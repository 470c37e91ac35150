"""gluon: training with DistributedTrainer equals training alone on the whole batch."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon
from mxnet_models import make_batches, make_net, set_same_weights, train, values

import horovod.mxnet as hvd

STEPS = 4
SGD = {"learning_rate": 0.2, "momentum": 0.9}


def trained_alone() -> list[np.ndarray]:
    net = make_net()
    set_same_weights(net)
    train(net, gluon.Trainer(net.collect_params(), "sgd", SGD, kvstore=None), make_batches(STEPS), 0, 1)
    return values(net)


def assert_close(actual, expected, tolerance=1e-5):
    for mine, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_groups": 1},
        {"num_groups": 3},
        {"num_groups": 50},
        {"gradient_predivide_factor": 2.0},
        {"prefix": "mine."},
    ],
    ids=str,
)
def test_split_batches_train_as_the_whole_batch(options, hybridized, rank, size):
    net = make_net(hybridized=hybridized)
    set_same_weights(net)
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", SGD, **options)

    train(net, trainer, make_batches(STEPS), rank, size)

    assert_close(values(net), trained_alone())


@pytest.mark.parametrize("num_groups", [0, 2])
def test_compressed_gradients_come_close(num_groups, rank, size):
    net = make_net()
    set_same_weights(net)
    trainer = hvd.DistributedTrainer(
        net.collect_params(), "sgd", SGD, compression=hvd.Compression.fp16, num_groups=num_groups
    )

    train(net, trainer, make_batches(STEPS), rank, size)

    assert_close(values(net), trained_alone(), 2e-2)


class Halves(hvd.compression.Compressor):
    """A compressor of the user's own: sends half of each number."""

    @staticmethod
    def compress(tensor):
        return tensor * 0.5, 2.0

    @staticmethod
    def decompress(tensor, ctx):
        return tensor * ctx


@pytest.mark.parametrize("num_groups", [0, 2])
def test_compressors_of_the_users_own(num_groups, rank, size):
    net = make_net()
    set_same_weights(net)
    trainer = hvd.DistributedTrainer(
        net.collect_params(), "sgd", SGD, compression=Halves, num_groups=num_groups
    )

    train(net, trainer, make_batches(STEPS), rank, size)

    assert_close(values(net), trained_alone())


@pytest.mark.parametrize("form", [dict, list])
def test_parameters_in_every_form(form, rank, size):
    net = make_net()
    set_same_weights(net)
    params = net.collect_params()
    given = dict(params.items()) if form is dict else list(params.values())
    trainer = hvd.DistributedTrainer(given, "sgd", SGD)

    train(net, trainer, make_batches(STEPS), rank, size)

    assert_close(values(net), trained_alone())


def test_a_distributed_optimizer_is_unwrapped(rank, size):
    net = make_net()
    set_same_weights(net)
    wrapped = hvd.DistributedOptimizer(mx.optimizer.SGD(**SGD))

    with pytest.warns(UserWarning, match="does not take DistributedOptimizer"):
        trainer = hvd.DistributedTrainer(net.collect_params(), wrapped)
    train(net, trainer, make_batches(STEPS), rank, size)

    assert_close(values(net), trained_alone())


def test_parameters_with_deferred_initialization(rank, size):
    mx.random.seed(rank)
    net = make_net(deferred=True)
    hvd.broadcast_parameters(net.collect_params(), root_rank=size - 1)
    trainer = hvd.DistributedTrainer(net.collect_params(), "adam")

    train(net, trainer, make_batches(STEPS), rank, size)

    for mine in hvd.allgather_object(values(net)):
        assert_close(mine, values(net), 0)


def test_ranks_outside_of_a_set_train_alone(rank, size, process_set):
    net = make_net()
    set_same_weights(net)
    included = process_set.included()
    members = process_set.ranks or [0]
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd", SGD, process_set=process_set)

    train(
        net,
        trainer,
        make_batches(STEPS),
        members.index(rank) if included else 0,
        len(members) if included else 1,
    )

    assert_close(values(net), trained_alone())


def test_parameters_that_have_no_gradient_stay(rank, size):
    net = make_net()
    set_same_weights(net)
    frozen = min(net.collect_params())
    net.collect_params()[frozen].grad_req = "null"
    before = net.collect_params()[frozen].data().asnumpy()

    train(net, hvd.DistributedTrainer(net.collect_params(), "sgd", SGD), make_batches(STEPS), rank, size)

    np.testing.assert_array_equal(net.collect_params()[frozen].data().asnumpy(), before)


def test_what_a_trainer_does_not_take():
    net = make_net()
    with pytest.raises(AssertionError, match="prefix"):
        hvd.DistributedTrainer(net.collect_params(), "sgd", prefix=3)
    with pytest.raises(ValueError, match="num_groups"):
        hvd.DistributedTrainer(net.collect_params(), "sgd", num_groups=-1)


@pytest.mark.disagreement
def test_one_process_has_one_context(rank, size):
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = hvd.DistributedTrainer(net.collect_params(), "sgd")

    with pytest.raises(ValueError, match="2 contexts"):
        trainer.allreduce_grads()
