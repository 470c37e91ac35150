"""The peer: MultiWorkerMirroredStrategy, a ring over gRPC, in the processes of a Horovod job."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from benchlib.parameters import ParameterList
from benchlib.ports import free_port
from benchlib.world import World

from .problems import cheap_loss


def start_strategy(world: World) -> Any:
    """Make the strategy over loopback, at free ports; before TensorFlow has run anything."""
    ports = [0] * world.size
    ports[world.rank] = free_port()
    addresses = [f"127.0.0.1:{int(world.total(port))}" for port in ports]
    task = {"type": "worker", "index": world.rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
    return tf.distribute.MultiWorkerMirroredStrategy(communication_options=ring())


def ring(bytes_per_pack: int = 0) -> Any:
    """Return the options of one ring; 0: TensorFlow's default, no packs."""
    return tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=bytes_per_pack,
        implementation=tf.distribute.experimental.CommunicationImplementation.RING,
    )


class StrategyTraining:
    """Trains the cheap model of a list as the strategy's own optimizers do."""

    def __init__(self, strategy: Any, parameters: ParameterList, learning_rate: float) -> None:
        """Make the variables, mirrored."""
        self._strategy = strategy
        self._learning_rate = learning_rate
        with strategy.scope():
            self.variables: Sequence[Any] = [tf.Variable(tf.zeros(shape)) for shape in parameters.shapes]

    def step(self, factor: Any, options: Any) -> Callable[[], None]:
        """Return one step of training as a graph."""

        def replica(given: Any) -> None:
            with tf.GradientTape() as tape:
                loss = cheap_loss(self.variables, given)
            context = tf.distribute.get_replica_context()
            gradients = tape.gradient(loss, self.variables)
            mean = context.all_reduce(tf.distribute.ReduceOp.MEAN, gradients, options=options)
            context.merge_call(self._update, args=tuple(mean))

        @tf.function(autograph=False)
        def step(given: Any) -> None:
            self._strategy.run(replica, args=(given,))

        return lambda: step(factor)

    def _update(self, strategy: Any, *gradients: Any) -> None:
        def subtract(variable: Any, gradient: Any) -> None:
            variable.assign_sub(self._learning_rate * gradient, read_value=False)

        for variable, gradient in zip(self.variables, gradients, strict=True):
            strategy.extended.update(variable, subtract, args=(gradient,), group=False)
