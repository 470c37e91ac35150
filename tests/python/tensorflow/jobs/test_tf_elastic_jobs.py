"""Elastic jobs with TensorFlow and Keras: a worker is killed in a function of TensorFlow, or in `fit`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from job import Ended, horovodrun, run, run_elastic_example, write_script

LIMIT_SECONDS = 300  # importing TensorFlow on a busy machine takes its time
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

START = """
import os, signal, sys
from pathlib import Path
import numpy as np
import tensorflow as tf

def happen(is_time):
    if is_time and hvd.rank() == hvd.size() - 1 and not Path(sys.argv[1]).exists():
        Path(sys.argv[1]).touch()
        os.kill(os.getpid(), signal.SIGKILL)

def end(model):
    weights = hvd.allgather(tf.reshape(model.variables[0], [1, -1]), name="weights").numpy()
    assert (weights == weights[0]).all(), weights
    print("done: rank", hvd.rank(), "of", hvd.size(), flush=True)
"""

TAPE = """
import horovod.tensorflow as hvd
LENGTH = 48
hvd.init()
tf.keras.utils.set_random_seed(hvd.rank())
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)

@tf.function
def step(index):
    inputs = tf.fill([2, 4], tf.cast(index, tf.float32) / LENGTH)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs) - 1.0))
    gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return hvd.allgather(tf.reshape(index, [1]), name="seen")

@hvd.elastic.run
def train(state):
    data = tf.data.Dataset.from_generator(
        lambda: iter(state.indices), output_signature=tf.TensorSpec([], tf.int64))
    for index in data.prefetch(4):
        state.seen = (*state.seen, *step(index).numpy().tolist())
        state.indices.record_batch(1)
        state.commit()
        happen(len(state.seen) >= LENGTH // 2)
    assert set(state.seen) == set(range(LENGTH)), sorted(state.seen)
    assert len(state.seen) - LENGTH < hvd.size(), sorted(state.seen)

indices = hvd.elastic.ElasticIndices(LENGTH)
train(hvd.elastic.TensorFlowKerasState(model, optimizer, indices=indices, seen=()))
end(model)
"""

FIT = """
import horovod.tensorflow.keras as hvd
EPOCHS = 3
hvd.init()
tf.keras.utils.set_random_seed(hvd.rank())
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01, momentum=0.9)), "mse")
inputs = np.random.default_rng(0).normal(size=(96, 4)).astype("float32")

class Death(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        happen(True)

@hvd.elastic.run
def train(state):
    callbacks = [hvd.elastic.UpdateEpochStateCallback(state), hvd.elastic.CommitStateCallback(state), Death()]
    model.fit(inputs, inputs.sum(1), batch_size=8, steps_per_epoch=6, epochs=EPOCHS - state.epoch, verbose=0,
              callbacks=callbacks)

state = hvd.elastic.KerasState(model, epoch=0)
train(state)
assert state.epoch == EPOCHS, state.epoch
end(model)
"""


def run_elastic(folder: Path, text: str) -> Ended:
    script = write_script(folder, START + text)
    options = ["-np", "3", "--min-np", "2", "--blacklist-cooldown-range", "600", "600"]
    return run(
        [horovodrun(), *options, sys.executable, script, str(folder / "killed")], LIMIT_SECONDS, **QUIET
    )


def assert_two_went_on(job: Ended) -> None:
    assert job.code == 0, job.output
    assert len(re.findall(r"done: rank \d of 2", job.output)) == 2, job.output
    assert "was killed by signal 9 (Killed); 2 of at least 2 workers remain: new epoch 2" in job.output, (
        job.output
    )


def test_the_others_go_on_inside_a_function_when_one_is_killed(tmp_path):
    assert_two_went_on(run_elastic(tmp_path, TAPE))


def test_the_others_go_on_in_fit_when_one_is_killed(tmp_path):
    assert_two_went_on(run_elastic(tmp_path, FIT))


@pytest.mark.parametrize(
    ("name", "arguments", "end"),
    [
        ("tensorflow2_tape", ("--steps", "40", "--seconds-per-step", "0"), "40 steps"),
        ("keras_fit", ("--epochs", "2", "--samples", "256"), "2 epochs"),
    ],
)
def test_the_examples_train_on_the_hosts_of_their_script(tmp_path, name, arguments, end):
    job = run_elastic_example(tmp_path, name, *arguments, **QUIET)

    assert job.code == 0, job.output
    assert len(re.findall(rf"rank \d is done after {end}", job.output)) == 2, job.output
