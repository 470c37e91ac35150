"""States of TensorFlow through resets in which every rank stays."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import horovod.tensorflow as hvd
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt


def make_model(value):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.set_weights([np.full_like(weight, value) for weight in model.get_weights()])
    return model


def values(variables):
    return [float(np.mean(variable.numpy())) for variable in variables]


def test_a_model_is_shared_saved_and_restored(rank):
    model = make_model(1.0 + rank)
    optimizer = tf.keras.optimizers.SGD(0.1 * (1 + rank), momentum=0.9)
    state = hvd.elastic.TensorFlowKerasState(model, optimizer, batch=20 + rank, epoch=10)

    state.sync()

    assert values(model.variables) == [1.0, 1.0]
    assert float(optimizer.learning_rate.numpy()) == pytest.approx(0.1)
    assert (state.batch, state.epoch) == (20, 10)
    model.set_weights(make_model(5.0).get_weights())
    state.batch = 21
    state.restore()
    assert values(model.variables) == [1.0, 1.0]
    assert state.batch == 20
    model.set_weights(make_model(5.0).get_weights())
    state.commit()
    model.set_weights(make_model(6.0).get_weights())
    state.restore()
    assert values(model.variables) == [5.0, 5.0]


def test_a_restored_variable_does_not_change_the_commit():
    # Places in memory differ: of many variables some lie where TensorFlow takes the memory over.
    variables = [tf.Variable(np.full(1000 + i, 1.0, np.float32)) for i in range(16)]
    state = hvd.elastic.TensorFlowState(variables)
    state.sync()
    for _ in range(2):
        for variable in variables:
            variable.assign_add(tf.ones_like(variable))

        state.restore()

        assert values(variables) == [1.0] * len(variables)


def test_a_model_that_is_not_built_is_refused():
    with pytest.raises(ValueError, match="built"):
        hvd.elastic.TensorFlowKerasState(tf.keras.Sequential([tf.keras.layers.Dense(2)]))


@pytest.mark.disagreement
def test_the_newest_commit_is_taken_and_never_a_newcomer(rank, size):
    variables = [tf.Variable([1.0, 2.0]), tf.Variable(3, dtype=tf.int64)]
    state = hvd.elastic.TensorFlowState(variables, step=0)
    state.sync()
    if rank == size - 1:
        variables[0].assign([7.0, 8.0])
        state.step = 7
        state.save()
    if rank == 0:
        state = hvd.elastic.TensorFlowState(variables, step=100)

    state.sync()

    assert variables[0].numpy().tolist() == [7.0, 8.0]
    assert variables[1].numpy() == 3
    assert state.step == 7


def test_what_failed_since_the_last_commit_is_done_again(rank):
    model = make_model(1.0)
    optimizer = tf.keras.optimizers.Adam(0.1)
    failures = [1, 3]

    @tf.function
    def step(number):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(tf.ones([4, 3]) * (1.0 + number))))
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    @hvd.elastic.run
    def train(state):
        while state.step < 5:
            step(tf.constant(float(state.step)))
            if failures and failures[0] == state.step:
                failures.pop(0)
                # As an operation of TensorFlow fails whose peer is gone.
                raise tf.errors.UnknownError(None, None, "HorovodAllreduce: rank 1 has ended")
            state.step += 1
            state.commit()
        return values(model.variables)

    found = train(hvd.elastic.TensorFlowKerasState(model, optimizer, step=0))

    plain, reference = make_model(1.0), tf.keras.optimizers.Adam(0.1)
    for number in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(plain(tf.ones([4, 3]) * (1.0 + number))))
        gradients = tape.gradient(loss, plain.trainable_variables)
        reference.apply_gradients(zip(gradients, plain.trainable_variables, strict=True))
    assert found == pytest.approx(values(plain.variables), rel=1e-4)
    assert not failures


def test_other_errors_of_tensorflow_are_raised():
    @hvd.elastic.run
    def train(state):
        raise tf.errors.UnknownError(None, None, "the disk is full")

    with pytest.raises(tf.errors.UnknownError, match="disk"):
        train(hvd.elastic.TensorFlowState([tf.Variable(1.0)]))


def test_hosts_that_changed_interrupt_all_ranks(rank, monkeypatch):
    from horovod._core.elastic import news

    state = hvd.elastic.TensorFlowState([tf.Variable(1.0)], step=4)
    monkeypatch.setattr(news, "look", lambda: news.News(timestamp=9 if rank == 0 else 0, changes=1))

    with pytest.raises(HostsUpdatedInterrupt) as raised:
        state.check_host_updates()

    assert raised.value.skip_sync


def test_every_sample_counts_once_in_a_dataset(size):
    length = 6 * size
    state = hvd.elastic.TensorFlowState(
        [tf.Variable(0.0)], indices=hvd.elastic.ElasticIndices(length), seen=()
    )
    failures = [2, 4]

    @hvd.elastic.run
    def train(state):
        data = tf.data.Dataset.from_generator(
            lambda: iter(state.indices), output_signature=tf.TensorSpec([], tf.int64)
        )
        for batch in data.batch(1).prefetch(4):
            state.seen = (*state.seen, *hvd.allgather(batch).numpy().tolist())
            state.indices.record_batch(1)
            if failures and len(state.seen) >= failures[0] * size:
                failures.pop(0)
                raise HorovodInternalError
            state.commit()
        return state.seen

    assert sorted(train(state)) == list(range(length))
    assert not failures
