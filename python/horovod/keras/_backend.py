"""The backend that Keras was started with; it cannot change while a program runs."""

from __future__ import annotations

import keras

from horovod._keras.backends import backend_module

backend = backend_module(keras.backend.backend())
