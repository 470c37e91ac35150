"""Models of Keras as bytes, in the `.keras` format; optimizers as a configuration and numbers."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


def pack_model(model: Any) -> bytes:
    """Return architecture and weights, without what `compile` was given, which may not be storable."""
    with tempfile.TemporaryDirectory() as folder, _uncompiled(model):
        path = Path(folder) / "model.keras"
        model.save(str(path))
        return path.read_bytes()


def unpack_model(keras: Any, packed: bytes, custom_objects: dict[str, Any] | None) -> Any:
    """Return a model that is not compiled. It may hold functions, so the bytes must be ours."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        path.write_bytes(packed)
        return keras.models.load_model(
            str(path), custom_objects=custom_objects or None, compile=False, safe_mode=False
        )


@contextmanager
def _uncompiled(model: Any) -> Iterator[None]:
    names = [name for name in ("compiled", "_is_compiled") if getattr(model, name, False)]
    for name in names:
        setattr(model, name, False)
    try:
        yield
    finally:
        for name in names:
            setattr(model, name, True)


@dataclass(frozen=True, slots=True)
class PackedOptimizer:
    """An optimizer: what Keras makes it from, its rate, and the values of its variables, if built."""

    config: Any
    learning_rate: float | None
    values: tuple[Any, ...]


def pack_optimizer(keras: Any, optimizer: Any, *, divide_rate_by: int = 1) -> PackedOptimizer:
    """Return an optimizer as plain data; the rate is None where a schedule decides it."""
    rate = fixed_rate(optimizer)
    values = (
        tuple(np.asarray(value) for value in _values(optimizer)) if getattr(optimizer, "built", True) else ()
    )
    config = keras.optimizers.serialize(optimizer)
    return PackedOptimizer(config, None if rate is None else rate / divide_rate_by, values)


def unpack_optimizer(
    keras: Any, packed: PackedOptimizer, custom_objects: dict[str, Any] | None, variables: Any
) -> Any:
    """Return the optimizer with its state, if it had one for as many variables."""
    optimizer = keras.optimizers.deserialize(packed.config, custom_objects=custom_objects or None)
    restore_optimizer(optimizer, packed.values, variables)
    if packed.learning_rate is not None:
        set_rate(optimizer, packed.learning_rate)
    return optimizer


def restore_optimizer(optimizer: Any, values: Any, variables: Any) -> None:
    """Give an optimizer the values of its variables, where they are those of the same model."""
    if not len(values):
        return
    optimizer.build(variables)
    own = optimizer.variables
    own = own() if callable(own) else own
    if len(own) != len(values) or any(
        tuple(v.shape) != np.shape(x) for v, x in zip(own, values, strict=True)
    ):
        return
    for variable, value in zip(own, values, strict=True):
        variable.assign(value)


def _values(optimizer: Any) -> list[Any]:
    variables = optimizer.variables
    variables = variables() if callable(variables) else variables
    return [variable.numpy() if hasattr(variable, "numpy") else variable for variable in variables]


def fixed_rate(optimizer: Any) -> float | None:
    """Return the learning rate; None if it is a schedule."""
    held = getattr(optimizer, "_learning_rate", None)
    if callable(held) and not hasattr(held, "assign"):
        return None
    rate = optimizer.learning_rate
    return float(rate.numpy() if hasattr(rate, "numpy") else rate)


def set_rate(optimizer: Any, rate: float) -> None:
    """Set the learning rate."""
    if hasattr(optimizer.learning_rate, "assign"):
        optimizer.learning_rate.assign(rate)
    else:
        optimizer.learning_rate = rate


def pack_values(values: Any) -> bytes:
    """Return arrays as bytes, without pickles."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {f"v{index:06d}": np.asarray(value) for index, value in enumerate(values)}
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def unpack_values(packed: bytes) -> list[Any]:
    """Return what `pack_values` was given."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as file:
        return [file[name] for name in sorted(file.files)]
