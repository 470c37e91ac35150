"""What is trained: variables, and the loss of this rank's share of the data. Knows nothing of Horovod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf
from benchlib.parameters import ParameterList
from keras import layers

_SEED = 1234


@dataclass(frozen=True, slots=True)
class Problem:
    """All ranks have the same variables, each has its own data."""

    name: str
    variables: Sequence[Any]
    loss: Callable[[Any], Any]
    """Of the data, inside a graph."""
    data: Any
    learning_rate: float


def cheap(parameters: ParameterList, rank: int) -> Problem:
    """Make a gradient for every parameter of a list with next to no arithmetic.

    What remains of a step is memory traffic and communication: the hardest case there is.
    """
    variables = [tf.Variable(tf.zeros(shape)) for shape in parameters.shapes]
    return Problem(
        parameters.name,
        variables,
        lambda factor: cheap_loss(variables, factor),
        tf.constant(1.0 + rank),
        1e-6,
    )


def cheap_loss(variables: Sequence[Any], factor: Any) -> Any:
    """Use each variable once; the gradient of every element is slope(index) * factor."""
    return tf.add_n([tf.reduce_sum(one * (factor * slope(index))) for index, one in enumerate(variables)])


def slope(index: int) -> float:
    """Return another number for each variable: TensorFlow would compute equal gradients only once."""
    return 1.0 + index


def mlp(rank: int) -> Problem:
    """Make a wide one: 5.8 M parameters for little arithmetic."""
    keras.utils.set_random_seed(_SEED)
    model = keras.Sequential(
        [
            layers.Input((784,)),
            layers.Dense(2048, activation="relu"),
            layers.Dense(2048, activation="relu"),
            layers.Dense(10),
        ]
    )
    return _classifier("MLP 784-2048-2048-10", model, (32, 784), rank)


def cnn(rank: int) -> Problem:
    """Make a small one: 0.1 M parameters for much arithmetic."""
    keras.utils.set_random_seed(_SEED)
    model = keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )
    return _classifier("CNN", model, (128, 28, 28, 1), rank)


def transformer(rank: int) -> Problem:
    """Make four blocks of width 256: 3.2 M parameters."""
    keras.utils.set_random_seed(_SEED)
    inputs = layers.Input((64, 256))
    values = inputs
    for _ in range(4):
        attended = layers.MultiHeadAttention(4, 64)(values, values)
        values = layers.LayerNormalization()(values + attended)
        hidden = layers.Dense(1024, activation="relu")(values)
        values = layers.LayerNormalization()(values + layers.Dense(256)(hidden))
    model = keras.Model(inputs, values)
    data = tf.random.stateless_normal((8, 64, 256), seed=(rank, 0))
    return Problem(
        "transformer 4x256",
        model.trainable_variables,
        lambda given: tf.reduce_mean(tf.square(model(given, training=True))),
        data,
        1e-4,
    )


def _classifier(name: str, model: Any, shape: tuple[int, ...], rank: int) -> Problem:
    images = tf.random.stateless_normal(shape, seed=(rank, 0))
    labels = tf.random.stateless_uniform(shape[:1], seed=(rank, 1), maxval=10, dtype=tf.int32)

    def loss(data: Any) -> Any:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(data[1], model(data[0], training=True))
        return tf.reduce_mean(losses)

    return Problem(name, model.trainable_variables, loss, (images, labels), 1e-3)
