"""The package of Lightning, under either of its names."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = ("lightning.pytorch", "pytorch_lightning")
MIN_PL_VERSION = "1.3.8"
_OLDEST = tuple(map(int, MIN_PL_VERSION.split(".")))


def packages() -> list[Any]:
    """Return the packages that are installed; RuntimeError if there is none that is new enough."""
    found = []
    for name in _NAMES:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            continue
    usable = [package for package in found if _version(package) >= _OLDEST]
    if not usable:
        have = ", ".join(f"{each.__name__} {each.__version__}" for each in found) or "none"
        message = (
            f"horovod.spark.lightning needs lightning or pytorch_lightning >= {MIN_PL_VERSION}, found {have}"
        )
        raise RuntimeError(message)
    return usable


def _version(package: Any) -> tuple[int, ...]:
    parts = package.__version__.split("+")[0].split(".")[:3]
    return tuple(int("".join(digit for digit in part if digit.isdigit()) or 0) for part in parts)


def is_lightning_module(model: Any) -> bool:
    """Whether a model is a LightningModule of either package."""
    return isinstance(model, tuple(package.LightningModule for package in packages()))
