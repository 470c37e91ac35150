"""Horovod on a Ray cluster: RayExecutor, and HorovodTrainer for Ray Train. See README.md.

The import is light: Ray itself is imported at the first use of a name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import _train_hook

if TYPE_CHECKING:
    from .elastic import ElasticRayExecutor
    from .runner import RayExecutor
    from .train_config import HorovodConfig
    from .trainer import HorovodTrainer
    from .worker import BaseHorovodWorker

__all__ = ["BaseHorovodWorker", "ElasticRayExecutor", "HorovodConfig", "HorovodTrainer", "RayExecutor"]

_HOMES = {
    "BaseHorovodWorker": "worker",
    "ElasticRayExecutor": "elastic",
    "HorovodConfig": "train_config",
    "HorovodTrainer": "trainer",
    "RayExecutor": "runner",
}

_train_hook.install()


def __getattr__(name: str) -> Any:
    """Import the module of a public name when it is asked for."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module 'horovod.ray' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"horovod.ray.{home}"), name)
