"""What a small allreduce costs as a node of a graph, beyond a node that only computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import tensorflow as tf
from benchlib.cases import added, at_most, make_case
from benchlib.contest import Contest, Contestant
from benchlib.effort import Effort
from benchlib.parameters import RESNET50
from benchlib.readings import CaseReadings
from benchlib.world import World

import horovod.tensorflow as hvd

_COUNT: Final = len(RESNET50.shapes)
_ELEMENTS: Final = 16
_LIMIT_SECONDS: Final = 10e-6

MakeNode = Callable[[Any, int], Any]


def _allreduce(tensor: Any, index: int) -> Any:
    return hvd.allreduce(tensor, op=hvd.Sum, name=f"node.{index}")


def _floor(tensor: Any, _index: int) -> Any:
    return tf.floor(tensor)


def measure(world: World, effort: Effort) -> list[CaseReadings]:
    """Compare graphs that differ in one kind of node."""
    allreduces, floors = _graph(_allreduce), _graph(_floor)
    _check(world, allreduces, floors)
    values = tf.ones([_ELEMENTS])
    contestants = [
        Contestant("hvd.allreduce", _repeated(allreduces, values)),
        Contestant("tf.floor", _repeated(floors, values)),
    ]
    name = f"np={world.size} node: {_COUNT} allreduces of {4 * _ELEMENTS} B"
    rounds = Contest(world).measure(name, contestants, effort)
    columns = [
        added("ours", "hvd.allreduce", "tf.floor", "one allreduce", parts=_COUNT),
        at_most(_LIMIT_SECONDS),
    ]
    return [make_case(name, "us", world.size, rounds, columns)]


def _graph(node: MakeNode) -> Any:
    # Every node has an input of its own, or TensorFlow would merge equal ones.
    @tf.function(autograph=False)
    def step(values: Any) -> Any:
        return tf.add_n([node(values * float(index + 1), index) for index in range(_COUNT)])

    return step


def _repeated(graph: Any, values: Any) -> Callable[[int], None]:
    def run(operations: int) -> None:
        for _ in range(operations):
            graph(values)

    return run


def _check(world: World, allreduces: Any, floors: Any) -> None:
    """Twice: first the operations are agreed on, the second time takes the path that is measured."""
    values = tf.fill([_ELEMENTS], float(world.rank + 1))
    expected = {
        "tf.floor": (floors, (world.rank + 1) * _COUNT * (_COUNT + 1) / 2),
        "hvd.allreduce": (allreduces, world.total(world.rank + 1) * _COUNT * (_COUNT + 1) / 2),
    }
    for name, (graph, value) in expected.items():
        for _ in range(2):
            got = graph(values).numpy()
            if not bool((got == value).all()):
                message = f"{name}: expected {value} everywhere, got {got}"
                raise AssertionError(message)
