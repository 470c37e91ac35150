"""Tapes, optimizers and the broadcast of variables: N ranks on parts of a batch equal one on all of it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from cases import assert_same, everybody

import horovod.tensorflow as hvd
from horovod.tensorflow import _gradient_reduction

v1 = tf.compat.v1
FEATURES, ROWS = 5, 12


def batch():
    """The data of all ranks."""
    random = np.random.RandomState(7)
    x = random.rand(ROWS, FEATURES).astype(np.float32)
    return x, x.sum(axis=1, keepdims=True)


def my_part(rank, size):
    x, y = batch()
    return tf.constant(x[rank::size]), tf.constant(y[rank::size])


def linear_loss(weights, x, y):
    return tf.reduce_mean(tf.square(tf.matmul(x, weights) - y))


def expected_gradient(weights):
    """The gradient on the whole batch, by hand: ROWS divides by every number of ranks used here."""
    x, y = batch()
    return 2 * x.T @ (x @ weights - y) / ROWS


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("options", [{}, {"groups": 1}, {"gradient_predivide_factor": 2.0}], ids=str)
def test_tape_equals_one_rank_on_the_whole_batch(compiled, options, rank, size):
    weights = tf.Variable(np.full([FEATURES, 1], 0.5, np.float32))
    x, y = my_part(rank, size)

    def compute():
        with tf.GradientTape() as tape:
            loss = linear_loss(weights, x, y)
        return hvd.DistributedGradientTape(tape, **options).gradient(loss, [weights])

    (gradient,) = (tf.function(compute) if compiled else compute)()

    np.testing.assert_allclose(gradient.numpy(), expected_gradient(weights.numpy()), rtol=1e-4)


def test_tapes_of_the_same_kind_share_a_graph(rank, size, monkeypatch):
    built = []
    build = _gradient_reduction.GradientReducer._in_graph
    monkeypatch.setattr(_gradient_reduction, "_graphs", {})
    monkeypatch.setattr(
        _gradient_reduction.GradientReducer, "_in_graph", lambda *given: built.append(1) or build(*given)
    )
    variables = [tf.Variable(tf.fill([size, 2], rank + 1.0)) for _ in range(3)]

    def step(**options):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(variable * variable) for variable in variables])
        return hvd.DistributedGradientTape(tape, **options).gradient(loss, variables)

    for _ in range(3):
        for gradient in step():
            assert_same(gradient.numpy(), np.full([size, 2], size + 1.0, np.float32))
    assert len(built) == (size > 1)
    for gradient in step(op=hvd.Sum):
        assert_same(gradient.numpy(), np.full([size, 2], (size + 1.0) * size, np.float32))


def test_what_reduces_gradients_for_an_optimizer_of_the_program(rank, size):
    reduce = hvd._make_allreduce_grads_fn(
        "Mine", "", "", hvd.Compression.none, True, hvd.Sum, 1.0, None, process_set=hvd.global_process_set
    )
    variables = [tf.Variable([1.0, 2.0]), tf.Variable([3.0]), tf.Variable(tf.ones([size, 1]))]
    rows = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([rank]), tf.constant([size, 1]))

    dense, missing, table = reduce((tf.constant([1.0, rank]), None, rows), tuple(variables))

    assert_same(dense.numpy(), np.array([size, sum(everybody())], np.float32))
    assert missing is None
    assert_same(tf.convert_to_tensor(table).numpy(), np.ones([size, 1], np.float32))


MODES = ["step", "background", "step on the first rank alone"]


@pytest.mark.parametrize("mode", MODES)
def test_many_gradients_under_every_schedule(mode, rank, size, monkeypatch):
    chosen = mode if mode in MODES[:2] else "step" if rank == 0 else "background"
    monkeypatch.setenv("HOROVOD_GRADIENT_SCHEDULE", chosen)
    # Some end while they are submitted, others are a matter of the background thread.
    variables = [tf.Variable(tf.zeros([1 + 50_000 * (i % 2) + i])) for i in range(24)]

    @tf.function
    def reduced(factor):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(v) * factor * (i + 1.0) for i, v in enumerate(variables)])
        return hvd.DistributedGradientTape(tape).gradient(loss, variables)

    for repeat in range(3):
        gradients = reduced(tf.constant(rank + 1.0 + repeat))
        for index, gradient in enumerate(gradients):
            expected = (index + 1.0) * ((size + 1) / 2 + repeat)
            np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6)


def test_gradients_that_nobody_uses_hold_nobody_up(rank, size, monkeypatch):
    monkeypatch.setenv("HOROVOD_GRADIENT_SCHEDULE", "step")
    variables = [tf.Variable(tf.zeros([40_000])) for _ in range(6)]

    @tf.function
    def last_two(factor):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(v) * factor * (i + 1.0) for i, v in enumerate(variables)])
        return hvd.DistributedGradientTape(tape).gradient(loss, variables)[4:]

    for gradient, slope in zip(last_two(tf.constant(rank + 1.0)), (5.0, 6.0), strict=True):
        np.testing.assert_allclose(gradient.numpy(), slope * (size + 1) / 2, rtol=1e-6)


def test_tape_keeps_structure_none_and_sparse(rank, size):
    table, unused = tf.Variable(tf.ones([size, 2])), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [rank]) * (rank + 1.0))

    gradients = hvd.DistributedGradientTape(tape).gradient(loss, {"table": table, "unused": unused})

    assert gradients["unused"] is None
    expected = np.array([[(r + 1) / size] * 2 for r in everybody()], np.float32)
    assert_same(tf.convert_to_tensor(gradients["table"]).numpy(), expected)


def test_sparse_as_dense(rank, size):
    table = tf.Variable(tf.ones([size, 2]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [rank]))

    (gradient,) = hvd.DistributedGradientTape(tape, sparse_as_dense=True).gradient(loss, [table])

    assert isinstance(gradient, tf.Tensor)
    assert_same(gradient.numpy(), np.full([size, 2], 1 / size, np.float32))


@pytest.mark.parametrize("scaled", [True, False])
def test_local_sources_stay_local(scaled, rank, size):
    shared, local = tf.Variable([1.0]), tf.Variable([1.0])
    with tf.GradientTape() as tape:
        loss = (rank + 1.0) * tf.reduce_sum(shared + local)
    tape = hvd.DistributedGradientTape(tape, scale_local_gradients=scaled)
    tape.register_local_source(local)

    own, others = tape.get_local_and_global_gradients(loss, [shared, local])

    ((source, gradient),) = own
    assert source is local
    assert_same(gradient.numpy(), np.array([(rank + 1.0) / (size if scaled else 1)], np.float32))
    ((source, gradient),) = others
    assert_same(gradient.numpy(), np.array([sum(r + 1.0 for r in everybody()) / size], np.float32))


def test_partial_tape(rank, size):
    layers = [tf.keras.layers.Dense(1, use_bias=False) for _ in range(2)]
    outputs = tf.constant([[rank + 1.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layers[0](outputs) + layers[1](outputs))
    tape = hvd.PartialDistributedGradientTape(tape, local_layers=layers[1])

    # What a tape knows is the variable of TensorFlow, which one of Keras 3 holds as its value.
    weights = [layer.trainable_weights[0] for layer in layers]
    sources = [weight if isinstance(weight, tf.Variable) else weight.value for weight in weights]
    gradients = tape.gradient(loss, sources)

    assert_same(gradients[0].numpy(), np.array([[sum(r + 1.0 for r in everybody()) / size]], np.float32))
    assert_same(gradients[1].numpy(), np.array([[(rank + 1.0) / size]], np.float32))
    with pytest.raises(ValueError, match="local_layers"):
        hvd.PartialDistributedGradientTape(tape, local_layers=3)


def test_groups_of_variables(rank, size):
    variables = [tf.Variable([float(i)]) for i in range(3)]
    with tf.GradientTape() as tape:
        loss = (rank + 1.0) * tf.add_n([(i + 1.0) * tf.reduce_sum(v) for i, v in enumerate(variables)])
    groups = [[variables[0], variables[2]]]

    gradients = hvd.DistributedGradientTape(tape, groups=groups).gradient(loss, variables)

    average = sum(r + 1.0 for r in everybody()) / size
    for index, gradient in enumerate(gradients):
        assert_same(gradient.numpy(), np.array([(index + 1) * average], np.float32))


def test_arguments_that_are_refused():
    tape = tf.GradientTape()
    with pytest.raises(ValueError, match="predivide"):
        hvd.DistributedGradientTape(tape, op=hvd.Sum, gradient_predivide_factor=2.0)
    with pytest.raises(ValueError, match="groups"):
        hvd.DistributedGradientTape(tape, groups=-1)
    with pytest.raises(ValueError, match="average_aggregated_gradients"):
        hvd.DistributedOptimizer(
            v1.train.GradientDescentOptimizer(0.1), op=hvd.Adasum, average_aggregated_gradients=True
        )
    with pytest.raises(ValueError, match="Adasum"):
        hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), op=hvd.Adasum)
    with pytest.warns(DeprecationWarning, match="num_groups"):
        hvd.DistributedGradientTape(tape, num_groups=2)


def test_broadcast_variables(rank, size):
    variables = [tf.Variable(tf.fill([3], rank)), tf.Variable(float(rank)), tf.Variable([rank % 2 == 0])]

    for inplace in (False, True):
        variables[0].assign(tf.fill([3], rank))
        assert hvd.broadcast_variables(variables, root_rank=size - 1, inplace=inplace) is None

        assert variables[0].numpy().tolist() == [size - 1] * 3
        assert float(variables[1]) == size - 1.0
        assert bool(variables[2]) == ((size - 1) % 2 == 0)


def test_broadcast_global_variables_needs_a_graph(rank):
    with pytest.raises(RuntimeError, match="broadcast_variables"):
        hvd.broadcast_global_variables(0)
    with tf.Graph().as_default():
        variable = v1.get_variable("v", initializer=float(rank + 5))
        broadcast = hvd.broadcast_global_variables(0)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(broadcast)
            assert session.run(variable) == 5.0


@pytest.mark.parametrize("use_resource", [True, False])
def test_optimizer_of_tensorflow_1_in_a_monitored_session(use_resource, rank, size, tmp_path):
    x, y = (part.numpy() for part in my_part(rank, size))
    with tf.Graph().as_default():
        weights = v1.get_variable(
            "w", initializer=np.full([FEATURES, 1], float(rank), np.float32), use_resource=use_resource
        )
        loss = linear_loss(weights, tf.constant(x), tf.constant(y))
        step = v1.train.get_or_create_global_step()
        train = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1)).minimize(loss, step)
        hooks = [hvd.BroadcastGlobalVariablesHook(0), v1.train.StopAtStepHook(last_step=4)]
        folder = str(tmp_path) if rank == 0 else None
        with v1.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks) as session:
            while not session.should_stop():
                _, values = session.run([train, weights])

    expected = np.zeros([FEATURES, 1], np.float32)
    for _ in range(4):
        before = expected
        expected = expected - 0.1 * expected_gradient(expected)
    # A session may read the weights before or after the last update.
    closest = min(np.abs(values - expected).max(), np.abs(values - before).max())
    assert closest < 1e-4


@pytest.mark.parametrize("averaged", [False, True])
def test_aggregation_in_graphs(averaged, rank, size):
    with tf.Graph().as_default():
        weights = v1.get_variable("w", initializer=np.zeros([2], np.float32))
        scale = v1.placeholder(tf.float32, [])
        optimizer = hvd.DistributedOptimizer(
            v1.train.GradientDescentOptimizer(1.0),
            backward_passes_per_step=3,
            average_aggregated_gradients=averaged,
        )
        step = v1.train.get_or_create_global_step()
        train = optimizer.minimize(scale * tf.reduce_sum(weights), step)
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
            for number in range(6):
                session.run(train, {scale: (rank + 1.0) * (number + 1)})
                passes = (number + 1) // 3 * 3
                total = sum(i + 1.0 for i in range(passes)) * sum(r + 1.0 for r in everybody()) / size
                expected = -total / (3 if averaged else 1)
                np.testing.assert_allclose(session.run(weights), [expected] * 2, rtol=1e-5)
                assert session.run(step) == number + 1


def test_aggregation_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="eager"):
        hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), backward_passes_per_step=2)


def test_adasum_of_changes(rank):
    with tf.Graph().as_default():
        weights = v1.get_variable("w", initializer=np.zeros([3], np.float32))
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.5), op=hvd.Adasum)
        train = optimizer.minimize(tf.reduce_sum(weights))
        start = optimizer.get_slot(weights, "delta_start")
        assert "delta_start" in optimizer.get_slot_names()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for number in range(3):
                session.run(train)
                np.testing.assert_array_equal(session.run(start), session.run(weights))
                # Equal changes combine to one of them.
                np.testing.assert_allclose(session.run(weights), [-0.5 * (number + 1)] * 3, rtol=1e-5)


def test_sync_batch_normalization(rank, size):
    x, _ = batch()
    layer = hvd.SyncBatchNormalization(momentum=0.0)

    result = layer(tf.constant(x[rank::size]), training=True).numpy()

    expected = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-3)
    np.testing.assert_allclose(result, expected[rank::size], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.asarray(layer.moving_mean), x.mean(axis=0), rtol=1e-4)
    for fused in (True, None):
        with pytest.raises(ValueError, match="fused"):
            hvd.SyncBatchNormalization(fused=fused)
