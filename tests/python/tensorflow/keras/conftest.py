"""Every rank of a job runs the same tests:

KERAS_BACKEND=jax horovodrun -np 2 python -m pytest tests/python/tensorflow/keras
"""

from __future__ import annotations

import tensorflow_settings
from rank_fixtures import rank, ranks_meet, size, skip_alone

__all__ = ["rank", "ranks_meet", "size", "skip_alone", "tensorflow_settings"]
