"""Where a program runs: eagerly, in a graph, under XLA; and small helpers around that."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

_F = TypeVar("_F", bound=Callable[..., Any])

_DATASET_FUNCTIONS = ("Dataset_", "tf_data_")
"""How the graphs of its functions begin: after Dataset.map() or tf.data.experimental.group_by_reducer()."""

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_]")
_FORBIDDEN_IN_NODE = re.compile(r"[^a-zA-Z0-9_./>-]")


def _executing_eagerly() -> bool:
    """Return whether operations run at once; False inside tf.function and in graphs."""
    return bool(tf.executing_eagerly())


def _make_subgraph(function: Callable[..., Any]) -> Any:
    """Return the function as a graph."""
    return tf.function(function)


def _cache(function: _F) -> _F:
    """Remember results by arguments."""
    return lru_cache(maxsize=None)(function)  # type: ignore[return-value]


def vars_to_refs(variables: Any) -> Any:
    """Return hashable references, so that variables can be keys."""
    if isinstance(variables, list):
        return tuple(vars_to_refs(variable) for variable in variables)
    return variables.ref()


def refs_to_vars(refs: Any) -> Any:
    """Undo vars_to_refs."""
    if isinstance(refs, tuple):
        return [refs_to_vars(ref) for ref in refs]
    return refs.deref()


def normalize_name(name: str) -> str:
    """Replace what cannot be part of a node's name by underscores."""
    return _FORBIDDEN.sub("_", name)


def node_name(name: str) -> str:
    """Return a name that a user gave as one that TensorFlow takes for a node."""
    cleaned = _FORBIDDEN_IN_NODE.sub("_", name)
    return cleaned if cleaned[:1].isalnum() or cleaned[:1] == "." else f"h{cleaned}"


def tensor_label(tensor: Any) -> str:
    """Return the name of a symbolic tensor, cleaned; tensors of eager execution have none."""
    return normalize_name(getattr(tensor, "name", None) or "tensor")


def first_and_last(tensors: Iterable[Any]) -> str:
    """Return the label of a group."""
    listed = list(tensors)
    return f"{tensor_label(listed[0])}_{tensor_label(listed[-1])}"


def is_elastic() -> bool:
    """Return whether the size of the job may change between runs of a graph."""
    text = os.environ.get("HOROVOD_ELASTIC", "0").strip() or "0"
    try:
        return int(text) != 0
    except ValueError:
        return False


def check_not_compiled(operation: str) -> None:
    """Raise while XLA compiles: it has no kernels for these ops, and says so late and at length."""
    if tf.executing_eagerly():
        return
    if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        message = (
            f"horovod: {operation} cannot be compiled by XLA; remove jit_compile=True from the function or "
            "model.compile that contains it (compile the computation of gradients alone, or pass "
            "jit_compile=False)"
        )
        raise ValueError(message)


def is_part_of_dataset() -> bool:
    """Return whether a function of a tf.data.Dataset is being built, here or around this graph."""
    if tf.executing_eagerly():
        return False
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        if str(getattr(graph, "name", "")).startswith(_DATASET_FUNCTIONS):
            return True
        graph = getattr(graph, "outer_graph", None)
    return False
