"""KerasState and its callbacks around `fit`, on the backend that KERAS_BACKEND names."""

from __future__ import annotations

import keras
import numpy as np
import pytest

import horovod.keras as hvd
from horovod.common.exceptions import HorovodInternalError


def make_model(value):
    # Ranks of these tests build different numbers of models.
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="only")], name="model")
    model.set_weights([np.full_like(weight, value) for weight in model.get_weights()])
    model.compile(hvd.DistributedOptimizer(keras.optimizers.Adam(0.01)), "mse")
    return model


def means(model):
    return [float(np.mean(weight)) for weight in model.get_weights()]


def test_a_model_is_shared_saved_and_restored(rank):
    model = make_model(1.0 + rank)
    state = hvd.elastic.KerasState(model, batch=3 + rank, epoch=0)

    state.sync()

    assert means(model) == [1.0, 1.0]
    assert state.batch == 3
    model.set_weights([weight * 4 for weight in model.get_weights()])
    state.batch = 9
    state.commit()
    model.set_weights([weight * 2 for weight in model.get_weights()])
    state.restore()
    assert means(model) == [4.0, 4.0]
    assert state.batch == 9


@pytest.mark.disagreement
def test_a_newcomer_receives_model_and_optimizer(rank):
    model = make_model(1.0)
    state = hvd.elastic.KerasState(model, step=0)
    state.sync()
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=4, verbose=0)
    state.step = 2
    state.commit()
    if rank == 0:
        state = hvd.elastic.KerasState(make_model(9.0), step=50)

    state.sync()

    assert state.step == 2
    assert int(np.asarray(state.optimizer.iterations)) == 2
    gathered = np.asarray(hvd.allgather(np.asarray([means(state.model)], np.float32)))
    assert np.allclose(gathered, gathered[0])


@pytest.mark.disagreement
def test_what_a_rank_has_built_before_does_not_matter(rank, monkeypatch):
    monkeypatch.setenv("HOROVOD_ELASTIC", "1")
    for _ in range(1 + 2 * rank):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.01)), "mse")

    model.fit(np.ones((8, 3)) * rank, np.ones((8, 1)), batch_size=4, verbose=0)

    assert int(np.asarray(model.optimizer.iterations)) == 2


def test_fit_goes_on_where_it_was_committed():
    model = make_model(1.0)
    inputs, targets = np.ones((24, 3), np.float32), np.zeros((24, 1), np.float32)
    state = hvd.elastic.KerasState(model, batch=0, epoch=0)
    failures = [(0, 3), (2, 1)]
    seen = []

    class Failing(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append((state.epoch, batch))
            if failures and failures[0] == (state.epoch, batch):
                failures.pop(0)
                raise HorovodInternalError

    @hvd.elastic.run
    def train(state):
        model.fit(
            inputs,
            targets,
            batch_size=4,
            epochs=3 - state.epoch,
            verbose=0,
            callbacks=[
                Failing(),
                hvd.elastic.UpdateEpochStateCallback(state),
                hvd.elastic.UpdateBatchStateCallback(state),
                hvd.elastic.CommitStateCallback(state, batches_per_commit=2),
            ],
        )

    train(state)

    assert not failures
    assert state.epoch == 3
    assert state.batch == 0
    # Three epochs of six batches; of the first, two had been committed when fit began it anew.
    assert int(np.asarray(model.optimizer.iterations)) == 2 + 18


def test_one_fit_per_epoch_processes_every_sample_once(size):
    length = 24 * size
    inputs, targets = np.ones((length, 3), np.float32), np.zeros((length, 1), np.float32)
    model = make_model(1.0)
    state = hvd.elastic.KerasState(model, indices=hvd.elastic.ElasticIndices(length))
    failures = [(0, 3), (2, 1)]

    class CountBatches(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if failures and failures[0] == (state.indices.epoch, batch):
                failures.pop(0)
                raise HorovodInternalError
            state.indices.record_batch(4)

    @hvd.elastic.run
    def train(state):
        while state.indices.epoch < 3:
            mine = list(state.indices)
            if mine:
                model.fit(
                    inputs[mine],
                    targets[mine],
                    batch_size=4,
                    shuffle=False,
                    verbose=0,
                    callbacks=[
                        CountBatches(),
                        hvd.elastic.CommitStateCallback(state, batches_per_commit=2),
                    ],
                )
            state.indices.set_epoch(state.indices.epoch + 1)
            state.commit()

    train(state)

    assert not failures
    assert int(np.asarray(model.optimizer.iterations)) == 18


def test_callbacks_count_as_they_say():
    class Recorder:
        batch, epoch = 0, 4
        commits = 0

        def commit(self):
            self.commits += 1

    state = Recorder()
    commit = hvd.elastic.CommitStateCallback(state, batches_per_commit=2)
    commit.on_train_begin()
    for batch in range(5):
        commit.on_batch_end(batch)
    assert state.commits == 2
    commit.on_epoch_end(0)
    assert state.commits == 3
    commit.on_train_begin()
    commit.on_batch_end(0)
    assert state.commits == 3

    class Tracking(hvd.elastic.CommitStateCallback):
        calls = 0

        def commit(self):
            self.calls += 1
            super().commit()

    tracking = Tracking(state, batches_per_commit=1)
    tracking.on_train_begin()
    tracking.on_batch_end(0)
    tracking.on_epoch_end(0)
    assert (tracking.calls, state.commits) == (2, 5)

    epochs = hvd.elastic.UpdateEpochStateCallback(state)
    epochs.on_train_begin()
    epochs.on_epoch_end(0)
    epochs.on_epoch_end(1)
    assert state.epoch == 6

    batches = hvd.elastic.UpdateBatchStateCallback(state)
    state.batch = 3
    batches.set_params({"steps": 10})
    batches.on_train_begin()
    batches.on_epoch_begin(0)
    assert batches.params["steps"] == 7
    batches.on_batch_end(5)
    assert state.batch == 5
    batches.on_epoch_end(0)
    assert state.batch == 0
    batches.on_epoch_begin(1)
    assert batches.params["steps"] == 10
