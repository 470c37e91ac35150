"""horovod.tensorflow.keras with Keras 2 (tf_keras, or that of an old TensorFlow): new and old optimizers."""

from __future__ import annotations

import itertools
import types
import warnings

import numpy as np
import pytest
import tensorflow as tf

import horovod.keras
import horovod.tensorflow
import horovod.tensorflow.keras as hvd
from horovod._core import reduced_twice

FEATURES, ROWS = 6, 24
KINDS = {
    "new": lambda: tf.keras.optimizers.SGD(0.1),
    "old": lambda: tf.keras.optimizers.legacy.SGD(0.1),
    "adam": lambda: tf.keras.optimizers.Adam(0.01),
}


def data():
    random = np.random.RandomState(3)
    x = random.rand(ROWS, FEATURES).astype("float32")
    return x, x.sum(axis=1, keepdims=True)


def my_rows(rank, size, batch):
    x, y = data()
    mine = [i for start in range(0, ROWS, batch) for i in range(start + rank, start + batch, size)]
    return x[mine], y[mine]


def make_model(seed):
    tf.keras.utils.set_random_seed(seed)
    layers = [tf.keras.layers.Dense(8, activation="tanh", input_shape=[FEATURES]), tf.keras.layers.Dense(1)]
    return tf.keras.Sequential(layers)


def assert_equal_everywhere(model):
    for weight in model.get_weights():
        gathered = hvd.allgather(weight[None]).numpy()
        np.testing.assert_array_equal(gathered, np.repeat(gathered[:1], hvd.size(), axis=0))


def test_this_is_keras_2():
    assert hasattr(tf.keras.optimizers, "legacy")
    assert not hasattr(tf.keras.optimizers.SGD, "stateless_apply")


@pytest.mark.parametrize("kind", KINDS)
def test_training_equals_one_process_on_whole_batches(kind, rank, size):
    alone, together = make_model(1), make_model(1)
    alone.compile(optimizer=KINDS[kind](), loss="mse")
    alone.fit(*data(), batch_size=12, epochs=2, shuffle=False, verbose=0)

    together.compile(optimizer=hvd.DistributedOptimizer(KINDS[kind]()), loss="mse")
    together.fit(*my_rows(rank, size, 12), batch_size=12 // size, epochs=2, shuffle=False, verbose=0)

    for mine, expected in zip(together.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("kind", ["new", "old"])
def test_aggregation(kind, rank, size):
    model = make_model(1)
    optimizer = hvd.DistributedOptimizer(KINDS[kind](), backward_passes_per_step=2)
    model.compile(optimizer=optimizer, loss="mse")
    start = model.get_weights()
    x, y = my_rows(rank, size, 12)

    model.fit(x[: 12 // size], y[: 12 // size], batch_size=12 // size, epochs=1, verbose=0)
    after_one = model.get_weights()
    assert int(optimizer._agg_helper.counter) == 1
    model.fit(x[12 // size :], y[12 // size :], batch_size=12 // size, epochs=1, verbose=0)

    assert int(optimizer._agg_helper.counter) == 0
    assert int(optimizer.iterations) == 2
    for old, new in zip(start, after_one, strict=True):
        np.testing.assert_array_equal(old, new)
    assert any(np.any(a != b) for a, b in zip(start, model.get_weights(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_saving_loading_and_callbacks(kind, rank, size, tmp_path):
    model = make_model(5 + rank)
    model.compile(optimizer=hvd.DistributedOptimizer(KINDS[kind]()), loss="mse", metrics=["mae"])
    x, y = my_rows(rank, size, 12)
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(0.1, warmup_epochs=1),
    ]
    history = model.fit(x, y, batch_size=12 // size, epochs=2, verbose=0, callbacks=callbacks).history
    path = str(tmp_path / "model.h5")
    model.save(path)

    plain = tf.keras.models.load_model(path)
    loaded = hvd.load_model(path)
    loaded.fit(x, y, batch_size=12 // size, epochs=1, verbose=0)

    assert history["lr"][-1] == pytest.approx(0.1, rel=1e-4)
    assert not hasattr(plain.optimizer, "_hvd_options")
    assert hasattr(loaded.optimizer, "_hvd_options")
    assert int(loaded.optimizer.iterations) == 6
    assert_equal_everywhere(loaded)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_root_resumes_from_a_checkpoint(kind, rank, size, tmp_path):
    x, y = my_rows(rank, size, 12)
    model = make_model(1 + rank)
    if rank == 0:
        path = str(tmp_path / "model.h5")
        model.compile(optimizer=KINDS[kind](), loss="mse")
        model.fit(x, y, batch_size=12 // size, epochs=2, verbose=0)
        model.save(path)
        model = hvd.load_model(path)
    else:
        model.compile(optimizer=hvd.DistributedOptimizer(KINDS[kind]()), loss="mse")

    callback = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    model.fit(x, y, batch_size=12 // size, epochs=2, verbose=0, callbacks=[callback])

    assert int(model.optimizer.iterations) == 8
    assert_equal_everywhere(model)


@pytest.mark.parametrize(
    ("kind", "method"),
    [("new", "compute_gradients"), ("new", "_compute_gradients"), ("old", "_compute_gradients")],
)
def test_computed_gradients_are_reduced_once(kind, method, rank, size):
    optimizer = hvd.DistributedOptimizer(KINDS[kind](), op=hvd.Sum)
    compute = getattr(optimizer, method)
    variable = tf.Variable([0.0])
    expected = sum(range(1, size + 1))

    pairs = compute(lambda: variable * float(rank + 1), [variable])
    optimizer.apply_gradients(pairs)
    assert pairs[0][0].numpy() == [expected]
    np.testing.assert_allclose(variable.numpy(), [-0.1 * expected], rtol=1e-6)

    optimizer.apply_gradients([(tf.constant([rank + 1.0]), variable)])  # of another origin
    np.testing.assert_allclose(variable.numpy(), [-0.2 * expected], rtol=1e-6)


@pytest.mark.parametrize("kind", ["new", "old"])
def test_gradients_are_computed_from_a_tape_and_a_gradient_of_the_loss(kind, rank, size):
    optimizer = hvd.DistributedOptimizer(KINDS[kind](), op=hvd.Sum)
    variable = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = variable * float(rank + 1)

    pairs = optimizer._compute_gradients(loss, [variable], tf.constant([1.0, 10.0]), tape)
    named = optimizer._compute_gradients(
        lambda: variable * float(rank + 1), var_list=lambda: [variable], grad_loss=tf.constant([1.0, 10.0])
    )

    expected = np.array([1.0, 10.0]) * sum(range(1, size + 1))
    for gradient, owner in [*pairs, *named]:
        assert owner is variable
        np.testing.assert_allclose(gradient.numpy(), expected)
    with pytest.raises(ValueError, match="tape"):
        optimizer._compute_gradients(loss, [variable], tf.constant([1.0, 10.0]))


@pytest.mark.parametrize("kind", ["new", "old"])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_distributed_tape_with_a_distributed_optimizer_is_noticed_once(compiled, kind, rank, size):
    reduced_twice._warn.cache_clear()
    model = make_model(1)
    optimizer = hvd.DistributedOptimizer(KINDS[kind]())
    optimizer.apply_gradients([(tf.zeros_like(v), v) for v in model.trainable_variables])

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(tf.ones([2, FEATURES])))
        tape = horovod.tensorflow.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            (tf.function(step) if compiled else step)()

    ours = [str(item.message) for item in caught if "hvd.DistributedGradientTape" in str(item.message)]
    assert len(ours) == (size > 1)
    assert all("hvd.DistributedOptimizer" in text for text in ours)


@pytest.mark.parametrize("kind", ["new", "old"])
def test_mixed_precision_with_an_overflow_on_one_rank(kind, rank, size):
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = make_model(1)
        model.compile(optimizer=hvd.DistributedOptimizer(KINDS[kind]()), loss="mse")
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    x, y = my_rows(rank, size, 12)
    before = model.get_weights()

    model.train_on_batch(x * np.float32(np.inf) if rank == size - 1 else x, y)
    after_overflow = model.get_weights()
    for _ in range(2):
        model.train_on_batch(x, y)

    for old, new in zip(before, after_overflow, strict=True):
        np.testing.assert_array_equal(old, new)
    assert any(np.any(a != b) for a, b in zip(before, model.get_weights(), strict=True))
    assert_equal_everywhere(model)


@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize("kind", ["new", "old"])
def test_a_function_that_makes_a_distributed_optimizer_loads(kind, ending, tmp_path):
    mine = type("Mine", (type(KINDS[kind]()),), {})
    if ending == "keras" and not hasattr(mine, "build"):
        pytest.skip("this Keras itself does not load optimizers of the old kind from .keras files")
    model = make_model(1)
    model.compile(optimizer=mine(0.1), loss="mse")
    model.train_on_batch(*data())
    path = str(tmp_path / f"model.{ending}")
    model.save(path)

    makers = {"Mine": lambda **config: hvd.DistributedOptimizer(mine(**config))}
    loaded = hvd.load_model(path, custom_objects=makers).optimizer
    plain = tf.keras.models.load_model(path, custom_objects={"Mine": mine}).optimizer

    assert isinstance(loaded, mine)
    assert hasattr(loaded, "_hvd_options")
    assert int(loaded.iterations) == int(plain.iterations)
    assert hvd.DistributedOptimizer(loaded) is loaded


@pytest.mark.parametrize("kind", KINDS)
def test_horovod_keras_works_with_tf_keras(kind, rank, size):
    model = make_model(5 + rank)
    optimizer = horovod.keras.PartialDistributedOptimizer(KINDS[kind](), local_layers=[])
    model.compile(optimizer=optimizer, loss="mse")
    callbacks = [
        horovod.keras.callbacks.BroadcastGlobalVariablesCallback(0),
        horovod.keras.callbacks.MetricAverageCallback(),
        horovod.keras.callbacks.LearningRateWarmupCallback(0.1, warmup_epochs=1),
    ]
    model.fit(*my_rows(rank, size, 12), batch_size=12 // size, epochs=2, verbose=0, callbacks=callbacks)
    assert_equal_everywhere(model)
    horovod.keras.PartialDistributedOptimizer(KINDS[kind](), local_layers=model.layers)


@pytest.mark.parametrize("kind", KINDS)
def test_methods_that_a_program_puts_before_the_reductions(kind, rank, size):
    model = make_model(1)
    optimizer = hvd.DistributedOptimizer(KINDS[kind](), sparse_as_dense=True)
    reduce_all, reduce_shared, counts = optimizer._allreduce, optimizer._allreduce_grads, []

    def register_first(optimizer, gradients, variables):
        optimizer.register_local_var(variables[0])
        return reduce_all(gradients, variables)

    def name_by_number(optimizer, gradients, variables):
        counts.append(len(variables))
        return reduce_shared(gradients, variables, use_generic_names=True)

    optimizer._allreduce = types.MethodType(register_first, optimizer)
    optimizer._allreduce_grads = types.MethodType(name_by_number, optimizer)
    callback = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    callback.register_local_var(model.weights[0])
    model.compile(optimizer=optimizer, loss="mse")
    x, y = my_rows(rank, size, 12)

    model.fit(x, y + rank, batch_size=12 // size, epochs=1, verbose=0, callbacks=[callback])

    assert set(counts) == {3}
    for position, weight in enumerate(model.get_weights()):
        gathered = hvd.allgather(weight[None]).numpy()
        is_same = all(np.array_equal(other, gathered[0]) for other in gathered)
        assert is_same == (position != 0 or size == 1)


@pytest.mark.parametrize("kind", [tf.keras.optimizers.SGD, tf.keras.optimizers.legacy.SGD])
@pytest.mark.parametrize("passes", [1, 2])
def test_gradients_that_a_program_has_reduced_stay_as_they_are(kind, passes, rank, size):
    optimizer = hvd.DistributedOptimizer(kind(1.0), op=hvd.Sum, backward_passes_per_step=passes)
    variable = tf.Variable([0.0])
    seen = []
    for _ in range(2 * passes):
        reduced = optimizer._allreduce([tf.constant([rank + 1.0])], [variable])
        optimizer.apply_gradients(zip(reduced, [variable], strict=True))
        seen.append(variable.numpy()[0])

    step = passes * size * (size + 1) / 2
    expected = [-step * ((index + 1) // passes) for index in range(2 * passes)]
    np.testing.assert_allclose(seen, expected)


def test_callbacks_in_a_graph_of_tensorflow_1(rank, size):
    with tf.Graph().as_default():
        model = make_model(5 + rank)
        mine = tf.Variable(float(rank + 7), trainable=False, name="of_the_program")
        tf.compat.v1.keras.backend.get_session().run(mine.initializer)
        optimizer = tf.keras.optimizers.legacy.SGD(0.01, momentum=0.5)
        model.compile(optimizer=hvd.DistributedOptimizer(optimizer), loss="mse")
        callbacks = [
            hvd.callbacks.BroadcastGlobalVariablesCallback(0),
            hvd.callbacks.MetricAverageCallback(),
            hvd.callbacks.LearningRateWarmupCallback(0.1, warmup_epochs=1),
            hvd.callbacks.LearningRateScheduleCallback(0.1, 0.5, start_epoch=1),
        ]
        history = model.fit(
            *my_rows(rank, size, 12), batch_size=12 // size, epochs=3, verbose=0, callbacks=callbacks
        ).history
        weights = model.get_weights()
        assert tf.compat.v1.keras.backend.get_session().run(mine) == 7
        with pytest.raises(ValueError, match="local_variables"):
            hvd.callbacks.BroadcastGlobalVariablesCallback(0, local_variables=model.weights)

        hvd.broadcast_global_variables(size - 1)

    assert history["lr"] == pytest.approx([0.1, 0.1, 0.05], rel=1e-4)
    for weight in weights:
        gathered = hvd.allgather(weight[None]).numpy()
        np.testing.assert_array_equal(gathered, np.repeat(gathered[:1], size, axis=0))


def test_broadcast_and_aggregation_in_a_graph_of_tensorflow_1(rank, size):
    x, y = my_rows(rank, size, 12)
    with tf.Graph().as_default():
        model = make_model(5 + rank)
        optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.legacy.SGD(0.1), backward_passes_per_step=2)
        model.compile(optimizer=optimizer, loss="mse")
        hvd.broadcast_global_variables(size - 1)
        weights = [model.get_weights()]
        for _ in range(4):
            model.train_on_batch(x, y)
            weights.append(model.get_weights())

    for step, (before, after) in enumerate(itertools.pairwise(weights)):
        changed = any(np.any(a != b) for a, b in zip(before, after, strict=True))
        assert changed == (step % 2 == 1)
    for weight in [*weights[0], *weights[-1]]:
        gathered = hvd.allgather(weight[None]).numpy()
        np.testing.assert_array_equal(gathered, np.repeat(gathered[:1], size, axis=0))


def test_an_optimizer_that_cannot_train_in_a_graph_is_refused_with_the_one_that_can():
    with (
        tf.Graph().as_default(),
        pytest.raises(NotImplementedError, match=r"use tf\.keras\.optimizers\.legacy\.SGD"),
    ):
        hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1))
