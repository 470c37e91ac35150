"""horovod.keras on the backend that KERAS_BACKEND names: training, callbacks, saving and loading."""

from __future__ import annotations

import subprocess
import sys
import types
import warnings

import keras
import numpy as np
import pytest

import horovod.keras as hvd
from horovod._core import reduced_twice

FEATURES, ROWS = 6, 24


def data():
    random = np.random.RandomState(3)
    x = random.rand(ROWS, FEATURES).astype("float32")
    return x, (x @ random.rand(FEATURES, 1)).astype("float32")


def my_rows(rank, size, batch):
    """This rank's part of every batch, batch after batch: together the ranks see the batches of one."""
    x, y = data()
    mine = [i for start in range(0, ROWS, batch) for i in range(start + rank, start + batch, size)]
    return x[mine], y[mine]


def make_model(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential(
        [
            keras.layers.Input([FEATURES]),
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.Dense(1),
        ]
    )


def weights_of(model):
    return [keras.ops.convert_to_numpy(weight) for weight in model.weights]


def fit(model, x, y, batch, *, epochs=2, callbacks=()):
    return model.fit(
        x, y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0, callbacks=list(callbacks)
    )


def assert_equal_everywhere(model):
    for weight in weights_of(model):
        gathered = np.asarray(keras.ops.convert_to_numpy(hvd.allgather(weight[None])))
        for other in gathered:
            np.testing.assert_array_equal(other, gathered[0])


OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9),
    "adam": lambda: keras.optimizers.Adam(0.01),
    "clipnorm": lambda: keras.optimizers.SGD(0.1, global_clipnorm=0.01),
    "accumulation": lambda: keras.optimizers.SGD(0.1, gradient_accumulation_steps=2),
    "ema": lambda: keras.optimizers.SGD(0.1, use_ema=True),
    "schedule": lambda: keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_training_equals_one_process_on_whole_batches(kind, rank, size):
    batch = 12
    alone, together = make_model(1), make_model(1)
    alone.compile(optimizer=OPTIMIZERS[kind](), loss="mse")
    fit(alone, *data(), batch)

    together.compile(optimizer=hvd.DistributedOptimizer(OPTIMIZERS[kind]()), loss="mse")
    fit(together, *my_rows(rank, size, batch), batch // size)

    for mine, expected in zip(weights_of(together), weights_of(alone), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=2e-3, atol=2e-5)
    assert_equal_everywhere(together)


def test_backward_passes_are_added(rank, size):
    batch = 12
    alone, together = make_model(1), make_model(1)
    alone.compile(optimizer=keras.optimizers.SGD(0.02, gradient_accumulation_steps=2), loss="mse")
    fit(alone, *data(), batch)
    optimizer = hvd.PartialDistributedOptimizer(keras.optimizers.SGD(0.01), backward_passes_per_step=2)
    together.compile(optimizer=optimizer, loss="mse")
    fit(together, *my_rows(rank, size, batch), batch // size)

    for mine, expected in zip(weights_of(together), weights_of(alone), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=2e-3, atol=2e-5)
    assert int(optimizer.iterations) == 4  # batches, as ever; of Keras 3 itself it is updates
    assert optimizer._agg_helper.counter == 0
    assert optimizer._agg_helper.counter.numpy() == 0


def test_backward_passes_count_batches_but_adam_counts_updates(rank, size):
    batch = 12
    decay = keras.optimizers.schedules.ExponentialDecay(0.02, 2, 0.5)
    alone, together = make_model(1), make_model(1)
    alone.compile(optimizer=keras.optimizers.Adam(decay, gradient_accumulation_steps=2), loss="mse")
    fit(alone, *data(), batch)
    adam = keras.optimizers.Adam(decay)
    optimizer = hvd.PartialDistributedOptimizer(
        adam, backward_passes_per_step=2, average_aggregated_gradients=True
    )
    together.compile(optimizer=optimizer, loss="mse")
    fit(together, *my_rows(rank, size, batch), batch // size)

    assert int(optimizer.iterations) == 4
    assert float(optimizer.learning_rate) == pytest.approx(0.02 * 0.5**2)
    for mine, expected in zip(weights_of(together), weights_of(alone), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=2e-3, atol=2e-5)


def test_training_goes_on_in_the_middle_of_backward_passes(rank, size, tmp_path):
    def compiled(seed):
        model = make_model(seed)
        optimizer = hvd.PartialDistributedOptimizer(keras.optimizers.Adam(0.01), backward_passes_per_step=2)
        model.compile(optimizer=optimizer, loss="mse")
        return model

    x, y = my_rows(rank, size, 8)
    straight, first = compiled(1), compiled(1)
    fit(straight, x, y, 8 // size)
    path = tmp_path / "interrupted.keras"
    fit(first, x, y, 8 // size, epochs=1)
    first.save(path)

    resumed = compiled(2)
    saved = keras.models.load_model(path)
    resumed.optimizer.build(resumed.trainable_variables)
    for variable, value in zip(
        [*resumed.weights, *resumed.optimizer.variables],
        [*saved.weights, *saved.optimizer.variables],
        strict=True,
    ):
        variable.assign(value)

    assert int(first.optimizer.iterations) == int(resumed.optimizer.iterations) == 3
    assert resumed.optimizer._agg_helper.counter == 1
    fit(resumed, x, y, 8 // size, epochs=1)
    assert int(resumed.optimizer.iterations) == 6
    for mine, expected in zip(weights_of(resumed), weights_of(straight), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=2e-3, atol=2e-5)


def test_backward_passes_inside_a_loss_scale(rank, size):
    batch = 12
    alone, together = make_model(1), make_model(1)
    alone.compile(optimizer=keras.optimizers.SGD(0.02, gradient_accumulation_steps=2), loss="mse")
    fit(alone, *data(), batch)
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01), initial_scale=4.0)
    optimizer = hvd.PartialDistributedOptimizer(scaled, backward_passes_per_step=2)
    together.compile(optimizer=optimizer, loss="mse")
    fit(together, *my_rows(rank, size, batch), batch // size)

    assert int(optimizer.iterations) == 4
    assert optimizer._agg_helper.counter == 0
    for mine, expected in zip(weights_of(together), weights_of(alone), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=2e-3, atol=2e-5)


def test_warmup_says_on_the_root_that_it_is_over(rank, size, capsys):
    model = make_model(1)
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
    warmup = hvd.callbacks.LearningRateWarmupCallback(0.25, warmup_epochs=2, verbose=1)
    fit(model, *my_rows(rank, size, 12), 12 // size, epochs=3, callbacks=[warmup])

    said = "\nEpoch 2: finished gradual learning rate warmup to 0.25.\n"
    assert capsys.readouterr().out == (said if rank == 0 else "")


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tapes are of TensorFlow")
def test_a_distributed_tape_with_a_distributed_optimizer_is_noticed_once(size):
    import tensorflow as tf

    import horovod.tensorflow

    reduced_twice._warn.cache_clear()
    weight = tf.Variable(1.0)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for wrap in (lambda tape: tape, *[horovod.tensorflow.DistributedGradientTape] * 2):
            assert not caught or size > 1
            with tf.GradientTape() as tape:
                loss = weight * 2.0
            optimizer.apply_gradients([(wrap(tape).gradient(loss, weight), weight)])

    ours = [str(item.message) for item in caught if "hvd.DistributedGradientTape" in str(item.message)]
    assert len(ours) == (size > 1)
    assert all("hvd.DistributedOptimizer" in text for text in ours)


def test_names_of_keras_2(rank):
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.25))
    optimizer.build(make_model(1).trainable_variables)
    assert optimizer.variables() == list(optimizer.variables)
    assert optimizer._name == "DistributedAdam"
    assert float(optimizer.lr) == 0.25
    optimizer.lr = 0.5
    assert float(optimizer.learning_rate) == 0.5


def test_callbacks(rank, size):
    model = make_model(10 + rank)
    model.compile(
        optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.5)),
        loss="mse",
        metrics=["mae"],
    )
    broadcast = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    callbacks = [
        broadcast,
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(0.1, warmup_epochs=2, verbose=1),
        hvd.callbacks.LearningRateScheduleCallback(0.1, lambda epoch: 0.5, start_epoch=3),
    ]

    history = fit(model, *my_rows(rank, size, 12), 12 // size, epochs=4, callbacks=callbacks).history

    assert broadcast.broadcast_done
    assert_equal_everywhere(model)
    assert history["lr"][1:] == pytest.approx([0.1, 0.1, 0.05], rel=1e-5)
    assert history["lr"][0] == pytest.approx(0.1 / size * ((size - 1) / 2 + 1), rel=1e-5)
    for values in history.values():
        shared = np.asarray(keras.ops.convert_to_numpy(hvd.allgather(np.array([values]))))
        np.testing.assert_array_equal(shared, np.repeat(shared[:1], size, axis=0))


def test_metrics_that_are_arrays_are_averaged(rank, size):
    logs = {"b": np.array([[1.0, 2.0], [3.0, rank]]), "a": rank, "c": np.array([rank + 1.0])}
    hvd.callbacks.MetricAverageCallback().on_epoch_end(0, logs)
    mean = (size - 1) / 2
    assert logs["a"] == mean
    assert logs["b"].tolist() == [[1.0, 2.0], [3.0, mean]]
    assert logs["c"].tolist() == [mean + 1]


def test_schedule_needs_a_rate():
    with pytest.raises(ValueError, match="initial_lr"):
        hvd.callbacks.LearningRateScheduleCallback(None, 0.1)


def test_best_model_checkpoint_needs_a_file(tmp_path, rank):
    checkpoint = hvd.callbacks.BestModelCheckpoint(monitor="loss")
    model = make_model(1)
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)), loss="mse")
    with pytest.raises(ValueError, match="filepath"):
        fit(model, *data(), 12, callbacks=[checkpoint])
    checkpoint.filepath = str(tmp_path / "best.keras")

    fit(model, *data(), 12, callbacks=[checkpoint])

    assert (tmp_path / "best.keras").exists()


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="a callback of horovod.tensorflow.keras")
def test_best_model_checkpoint_of_weights(tmp_path):
    from horovod.tensorflow.keras.callbacks import BestModelCheckpoint

    checkpoint = BestModelCheckpoint(monitor="loss", save_weights_only=True)
    checkpoint.filepath = str(tmp_path / "best.weights.h5")
    model = make_model(1)
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse")

    fit(model, *data(), 12, callbacks=[checkpoint])

    assert (tmp_path / "best.weights.h5").exists()


def test_mixed_precision_with_an_overflow_on_one_rank(rank, size):
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model = make_model(1)
        optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.01))
        model.compile(optimizer=optimizer, loss="mse")
    finally:
        keras.config.set_dtype_policy("float32")
    x, y = my_rows(rank, size, 12)
    bad = x.copy()
    if rank == size - 1:
        bad[:] = np.inf
    before = weights_of(model)

    fit(model, bad, y, 12 // size, epochs=1)
    after_overflow = weights_of(model)
    fit(model, x, y, 12 // size, epochs=1)

    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    for old, new in zip(before, after_overflow, strict=True):
        np.testing.assert_array_equal(old, new)
    assert any(np.any(a != b) for a, b in zip(after_overflow, weights_of(model), strict=True))
    assert_equal_everywhere(model)


def test_a_loss_scale_around_a_distributed_optimizer_is_refused():
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.01))
    with pytest.raises(ValueError, match=r"DistributedOptimizer\(LossScaleOptimizer"):
        keras.optimizers.LossScaleOptimizer(optimizer)


def test_local_layers_are_not_reduced(rank, size):
    model = make_model(1)
    local = model.layers[-1]
    optimizer = hvd.PartialDistributedOptimizer(
        keras.optimizers.SGD(0.1), local_layers=[local], scale_local_gradients=False
    )
    model.compile(optimizer=optimizer, loss="mse")
    x, y = my_rows(rank, size, 12)

    fit(model, x, y + rank, 12 // size, epochs=1)

    shared = np.asarray(keras.ops.convert_to_numpy(hvd.allgather(weights_of(model)[0][None])))
    np.testing.assert_array_equal(shared, np.repeat(shared[:1], size, axis=0))
    if size > 1:
        kernels = np.asarray(keras.ops.convert_to_numpy(hvd.allgather(weights_of(local)[0][None])))
        assert np.any(kernels[0] != kernels[1])
    with pytest.raises(ValueError, match="local_layers"):
        hvd.PartialDistributedOptimizer(keras.optimizers.SGD(0.1), local_layers=[1])


def test_methods_that_a_program_puts_before_the_reductions(rank, size):
    model = make_model(1)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))
    reduce_all, reduce_shared, counts = optimizer._allreduce, optimizer._allreduce_grads, []

    def register_first(optimizer, gradients, variables):
        optimizer.register_local_var(variables[2])
        return reduce_all(gradients, variables)

    def count(optimizer, gradients, variables):
        counts.append(len(variables))
        return reduce_shared(gradients, variables)

    optimizer._allreduce = types.MethodType(register_first, optimizer)
    optimizer._allreduce_grads = types.MethodType(count, optimizer)
    model.compile(optimizer=optimizer, loss="mse")
    x, y = my_rows(rank, size, 12)

    fit(model, x, y + rank, 12 // size, epochs=1)

    assert set(counts) == {3}
    assert_only_one_differs(model, 2)


def test_gradients_that_a_program_has_reduced_stay_as_they_are(rank, size):
    model = make_model(1)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), op=hvd.Sum)
    variables = model.trainable_variables
    starts = [keras.ops.convert_to_numpy(variable) for variable in variables]
    for _ in range(2):
        mine = [keras.ops.ones(variable.shape) * (rank + 1) for variable in variables]
        optimizer.apply_gradients(zip(optimizer._allreduce(mine, variables), variables, strict=True))
    optimizer.apply_gradients([(keras.ops.ones(variable.shape), variable) for variable in variables])

    moved = 2 * size * (size + 1) / 2 + size
    for start, variable in zip(starts, variables, strict=True):
        np.testing.assert_allclose(keras.ops.convert_to_numpy(variable), start - moved, rtol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.keras.backend is TensorFlow's")
def test_the_rate_can_be_set_as_in_keras_2():
    import tensorflow as tf

    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.5))

    tf.keras.backend.set_value(optimizer.lr, 0.25)

    assert float(optimizer.learning_rate) == 0.25
    assert tf.keras.backend.get_value(optimizer.lr) == optimizer.lr.numpy() == 0.25
    optimizer.lr = 0.125
    assert float(optimizer.learning_rate) == 0.125


def assert_only_one_differs(model, index):
    for position, weight in enumerate(weights_of(model)):
        gathered = np.asarray(keras.ops.convert_to_numpy(hvd.allgather(weight[None])))
        is_same = all(np.array_equal(other, gathered[0]) for other in gathered)
        assert is_same == (position != index or hvd.size() == 1)


def test_the_broadcast_leaves_out_registered_variables(rank, size):
    model = make_model(5 + rank)
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.0)), loss="mse")
    callback = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
    callback.register_local_var(model.weights[0])

    fit(model, *my_rows(rank, size, 12), 12 // size, epochs=1, callbacks=[callback])

    assert_only_one_differs(model, 0)


LOAD_ALONE = """
import sys, keras
model = keras.models.load_model(sys.argv[1])
assert "horovod.keras" not in sys.modules
assert type(model.optimizer).__name__ == "Adam", type(model.optimizer)
if sys.argv[1].endswith(".keras"):  # Keras 3 reads no state of an optimizer from other files
    assert int(model.optimizer.iterations) == int(sys.argv[2])
"""


@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_saving_and_loading(ending, rank, size, tmp_path):
    model = make_model(1)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01))
    model.compile(optimizer=optimizer, loss=keras.losses.MeanSquaredError())
    x, y = my_rows(rank, size, 12)
    fit(model, x, y, 12 // size)
    path = str(tmp_path / f"model.{ending}")
    model.save(path)

    loaded = hvd.load_model(path)
    fit(model, x, y, 12 // size)
    fit(loaded, x, y, 12 // size)

    assert type(loaded.optimizer).__name__ == "Adam"
    assert hasattr(loaded.optimizer, "_hvd_options")
    for mine, expected in zip(weights_of(loaded), weights_of(model), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-6)
    assert_equal_everywhere(loaded)
    done = subprocess.run(
        [sys.executable, "-c", LOAD_ALONE, path, "4"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


class Doubling(keras.optimizers.SGD):
    """An optimizer that is not Keras' own."""

    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient * 2, variable, learning_rate)


def test_an_optimizer_that_is_not_of_keras_keeps_its_name(tmp_path):
    optimizer = hvd.DistributedOptimizer(Doubling(0.1))
    assert (type(optimizer).__module__, type(optimizer).__name__) == (Doubling.__module__, "Doubling")
    model = make_model(1)
    model.compile(optimizer=optimizer, loss="mse")
    path = str(tmp_path / "model.keras")
    model.save(path)

    plain = keras.models.load_model(path, custom_objects={"Doubling": Doubling})
    loaded = hvd.load_model(path, custom_optimizers=[Doubling])

    assert type(plain.optimizer) is Doubling
    assert isinstance(loaded.optimizer, Doubling)
    assert hasattr(loaded.optimizer, "_hvd_options")


@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_a_function_that_makes_a_distributed_optimizer_loads(ending, tmp_path):
    model = make_model(1)
    model.compile(optimizer=Doubling(0.1), loss=keras.losses.MeanSquaredError())
    model.train_on_batch(*data())
    path = str(tmp_path / f"model.{ending}")
    model.save(path)

    makers = {"Doubling": lambda **config: hvd.DistributedOptimizer(Doubling(**config))}
    loaded = hvd.load_model(path, custom_objects=makers).optimizer

    assert isinstance(loaded, Doubling)
    assert hasattr(loaded, "_hvd_options")
    assert int(loaded.iterations) == 1
    assert hvd.DistributedOptimizer(loaded) is loaded


def test_only_the_root_resumes_from_a_checkpoint(rank, size, tmp_path):
    x, y = my_rows(rank, size, 12)
    model = make_model(1 + rank)
    if rank == 0:
        path = str(tmp_path / "model.keras")
        model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
        fit(model, x, y, 12 // size)
        model.save(path)
        model = hvd.load_model(path)
    else:
        model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)), loss="mse")

    fit(model, x, y, 12 // size, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])

    assert int(model.optimizer.iterations) == 8
    assert_equal_everywhere(model)


def test_values(rank, size):
    assert float(hvd.allreduce(np.float32(rank))) == pytest.approx((size - 1) / 2)
    assert float(hvd.allreduce(np.float32(1.0), op=hvd.Sum)) == size
    assert np.asarray(hvd.allgather(np.array([rank]))).tolist() == list(range(size))
    assert np.asarray(hvd.broadcast(np.array([rank, 7]), size - 1)).tolist() == [size - 1, 7]
    part = np.asarray(hvd.reducescatter(np.ones([size, 2], np.float32), op=hvd.Sum))
    assert part.tolist() == [[size, size]]


@pytest.mark.parametrize("compression", ["fp16", "bf16"])
def test_compression(compression, rank, size):
    model = make_model(1)
    optimizer = hvd.DistributedOptimizer(
        keras.optimizers.SGD(0.01), compression=getattr(hvd.Compression, compression)
    )
    model.compile(optimizer=optimizer, loss="mse")

    fit(model, *my_rows(rank, size, 12), 12 // size)

    assert_equal_everywhere(model)


def test_arguments_that_are_refused():
    with pytest.raises(ValueError, match="op"):
        hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), op=hvd.Adasum)
    with pytest.raises(ValueError, match="groups"):
        hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), groups=0)
    with pytest.raises(ValueError, match="gradient_accumulation_steps"):
        hvd.PartialDistributedOptimizer(
            keras.optimizers.SGD(0.1, gradient_accumulation_steps=2), backward_passes_per_step=2
        )


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="XLA compiles the others' steps well")
def test_jit_compile_is_turned_off_by_callbacks_and_refused_without(rank, size):
    x, y = my_rows(rank, size, 12)
    model = make_model(1)
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse", jit_compile=True)
    fit(model, x, y, 12 // size, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
    if size == 1:
        return
    model = make_model(1)
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse", jit_compile=True)
    with pytest.raises(ValueError, match="cannot be compiled by XLA"):
        fit(model, x, y, 12 // size)
