"""Every rank of a job runs the same tests:

horovodrun -np 2 python -m pytest tests/python/tensorflow/legacy_keras
"""

from __future__ import annotations

import os

import tensorflow_settings
from rank_fixtures import rank, ranks_meet, size, skip_alone

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # read when TensorFlow is imported

__all__ = ["rank", "ranks_meet", "size", "skip_alone", "tensorflow_settings"]
