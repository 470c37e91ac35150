"""Every operation of TensorFlow on a stand-in GPU, eagerly and in a function, and a step of training.

Neg is the stand-in's own kernel: it runs in TensorFlow's stream, which is late, so that tensors are ready
long after the operation was submitted. Memory of the GPU cannot be touched by the host.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow_gpu

# One device for each rank, as number 0.
os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("HOROVOD_LOCAL_RANK", "0")
driver = tensorflow_gpu.use()

import numpy as np
import tensorflow as tf

import horovod.tensorflow as hvd

WITH_KERNELS = os.environ.get("HOROVOD_TENSORFLOW_GPU_KERNELS") == "1"

hvd.init()
rank, size = hvd.rank(), hvd.size()
gpu = tf.device("/GPU:0")
total = float(sum(range(1, size + 1)))


def late(value: float, *shape: int) -> Any:
    """A tensor whose values come when TensorFlow's stream has got to it."""
    with gpu:
        return -tf.fill(shape, -float(value))


def same(result: Any, expected: Any) -> None:
    place = "GPU" if WITH_KERNELS else "CPU"
    if tf.executing_eagerly():
        assert f"device:{place}:0" in result.device, (result.device, place)
    found = result.numpy()
    assert np.array_equal(found, expected), (found, expected)


def of_ranks(*shape: int) -> Any:
    return np.concatenate([np.full(shape, r + 1.0) for r in range(size)])


driver.set("item_delay_us", 3000)
with gpu:
    for count in (3, 100_000):
        same(hvd.allreduce(late(rank + 1, count), op=hvd.Sum), np.full(count, total))
        same(hvd.allgather(late(rank + 1, count, 2)), of_ranks(count, 2))
        same(hvd.broadcast(late(rank + 1, count), root_rank=1), np.full(count, 2.0))
        result, splits = hvd.alltoall(late(rank + 1, count * size), tf.constant([count] * size))
        same(result, of_ranks(count))
        assert splits.numpy().tolist() == [count] * size
        same(hvd.reducescatter(late(rank + 1, size * count), op=hvd.Sum), np.full(count, total))
    uneven = np.concatenate([np.full(r + 1, r + 1.0) for r in range(size)])
    same(hvd.allgather(late(rank + 1, rank + 1)), uneven)
    same(hvd.allreduce(late(rank + 1, 5)), np.full(5, total / size))
    group = [late(rank + i, 10 * (i + 1)) for i in range(3)]
    for i, result in enumerate(hvd.grouped_allreduce(group, op=hvd.Sum)):
        same(result, np.full(10 * (i + 1), float(sum(r + i for r in range(size)))))
    same(hvd.allgather(late(rank + 1, 0, 2)), np.zeros((0, 2)))


# Memory of TensorFlow's that is freed and given out again while the stream is late.
@tf.function
def chain(x: Any) -> Any:
    with gpu:
        for _ in range(4):
            x = -hvd.allgather(-x)[: tf.shape(x)[0]]
            x = hvd.allreduce(tf.negative(-x), op=hvd.Sum) / size
        return x


same_chain = chain(late(1.0, 1000)).numpy()
assert np.array_equal(same_chain, np.full(1000, 1.0)), same_chain

# A step: the gradients are on the GPU when they are reduced.
weights = np.linspace(-1, 1, 12).reshape(4, 3).astype("float32")
data = np.random.default_rng(7).normal(size=(size, 8, 4)).astype("float32")
with tf.device("/CPU:0"):  # without kernels of a vendor TensorFlow would change them on the host
    variable, alone = tf.Variable(weights), tf.Variable(weights)
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(data[rank], variable)))
    gradient = tape.gradient(loss, variable)
    with gpu:
        reduced = hvd.allreduce(tf.negative(-gradient))
    variable.assign_sub(0.1 * reduced)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(data.reshape(-1, 4), alone)))
    alone.assign_sub(0.1 * tape.gradient(loss, alone))
assert np.allclose(variable.numpy(), alone.numpy(), atol=1e-6), (variable.numpy(), alone.numpy())

driver.set("item_delay_us", 0)
for _ in range(20):
    hvd.allreduce(late(1.0, 100), name="steady")
events = driver.get("events_alive")
for _ in range(100):
    hvd.allreduce(late(1.0, 100), name="steady")
assert driver.get("events_alive") <= events + 4, (events, driver.get("events_alive"))
hvd.shutdown()
print("TENSORFLOW RIGHT", rank, flush=True)
