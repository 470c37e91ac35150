"""The Keras that this program runs, and its backend; neither can change while it runs."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

from horovod._keras.backends import backend_module


def _chosen() -> Any:
    """Return tf_keras where TensorFlow uses it as tf.keras, else keras."""
    is_legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    is_tensorflow = os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow"
    has_legacy = is_legacy and is_tensorflow and importlib.util.find_spec("tf_keras") is not None
    return importlib.import_module("tf_keras" if has_legacy else "keras")


keras = _chosen()
backend = backend_module(keras.backend.backend())
