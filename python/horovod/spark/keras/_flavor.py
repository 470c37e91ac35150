"""Which Keras a model is of: Keras 3 and its backend, or the Keras 2 of TensorFlow. Imports neither."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from typing import Any

_MODULES = ("keras", "tf_keras")
_KERAS_3 = 3


@dataclass(frozen=True, slots=True)
class Flavor:
    """A Keras. `backend` is that of Keras 3, None for those of TensorFlow alone."""

    module: str
    backend: str | None

    def environment(self) -> dict[str, str]:
        """Return the variables that a process needs before it imports Keras."""
        if self.backend is not None:
            return {"KERAS_BACKEND": self.backend}
        return {"TF_USE_LEGACY_KERAS": "1"} if self.module == "tf_keras" else {}

    def keras(self) -> Any:
        """Import it."""
        for name, value in self.environment().items():
            os.environ[name] = value
        module = importlib.import_module(self.module)
        found = module.backend.backend() if self.backend is not None else None
        if found != self.backend:
            message = (
                f"this process runs Keras on {found} already, but the model is one of Keras on "
                f"{self.backend}; set KERAS_BACKEND={self.backend} for the executors"
            )
            raise RuntimeError(message)
        return module

    def horovod(self) -> Any:
        """Import the front end for it."""
        self.keras()
        return importlib.import_module("horovod.keras" if self.backend else "horovod.tensorflow.keras")


def flavor_of(model: Any) -> Flavor:
    """Return the Keras of a model; ValueError if it is not one of Keras."""
    for name in _MODULES:
        module = sys.modules.get(name)
        if module is not None and isinstance(model, module.Model):
            is_keras_3 = name == "keras" and int(module.__version__.split(".")[0]) >= _KERAS_3
            return Flavor(name, module.backend.backend() if is_keras_3 else None)
    message = f"model has to be an instance of tf.keras.Model or keras.Model, got {type(model).__name__}"
    raise ValueError(message)
