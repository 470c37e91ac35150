"""Every rank of a job runs the same tests:

horovodrun -np 2 python -m pytest tests/python/jax/parallel
"""

from __future__ import annotations

import jax_settings
from rank_fixtures import process_set, rank, ranks_meet, size, skip_alone

__all__ = ["jax_settings", "process_set", "rank", "ranks_meet", "size", "skip_alone"]
