"""A program in the style of TensorFlow 1: a session, an optimizer that scales with the job, a hook.

horovodrun -np 2 python examples/tensorflow/tensorflow1_mnist_style.py
"""

from __future__ import annotations

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd

v1 = tf.compat.v1
v1.disable_eager_execution()

PIXELS, CLASSES = 64, 10


def pictures(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Each class is a pattern of its own, with noise."""
    patterns = np.random.RandomState(0).rand(CLASSES, PIXELS)
    random = np.random.RandomState(seed)
    labels = random.randint(0, CLASSES, count)
    return (patterns[labels] + 0.3 * random.randn(count, PIXELS)).astype(np.float32), labels.astype(np.int64)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()

    hvd.init()

    image = v1.placeholder(tf.float32, [None, PIXELS], name="image")
    label = v1.placeholder(tf.int64, [None], name="label")
    hidden = tf.nn.relu(image @ v1.get_variable("w1", [PIXELS, 32]) + v1.get_variable("b1", [32]))
    logits = hidden @ v1.get_variable("w2", [32, CLASSES])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))

    # More workers take larger steps.
    optimizer = v1.train.AdagradOptimizer(0.05 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer)
    global_step = v1.train.get_or_create_global_step()
    train = optimizer.minimize(loss, global_step=global_step)

    hooks = [
        # All workers begin with the weights of rank 0, whether random or from a checkpoint.
        hvd.BroadcastGlobalVariablesHook(0),
        v1.train.StopAtStepHook(last_step=max(1, arguments.steps // hvd.size())),
    ]
    # Only rank 0 writes checkpoints, so that workers do not overwrite each other's.
    folder = None
    if hvd.rank() == 0:
        folder = os.environ.get("HVD_EXAMPLE_FOLDER") or tempfile.mkdtemp(prefix="hvd-checkpoints-")

    x, y = pictures(1 + hvd.rank(), 2048)
    random = np.random.RandomState(hvd.rank())
    first = last = None
    with v1.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks) as session:
        while not session.should_stop():
            chosen = random.randint(0, len(x), 64)
            _, last = session.run([train, loss], {image: x[chosen], label: y[chosen]})
            first = last if first is None else first
    if hvd.rank() == 0:
        print(f"loss {first:.3f} -> {last:.3f}, checkpoints in {folder}")
        print("done")


if __name__ == "__main__":
    main()
