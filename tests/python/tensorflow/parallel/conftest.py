"""Every rank of a job runs the same tests:

horovodrun -np 2 python -m pytest tests/python/tensorflow/parallel
"""

from __future__ import annotations

from rank_fixtures import process_set, rank, ranks_meet, size, skip_alone
from tensorflow_settings import use_one_thread

use_one_thread()

__all__ = ["process_set", "rank", "ranks_meet", "size", "skip_alone"]
