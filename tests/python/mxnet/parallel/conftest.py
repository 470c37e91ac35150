"""Every rank of a job runs the same tests:

horovodrun -np 2 python -m pytest tests/python/mxnet/parallel
"""

from __future__ import annotations

from rank_fixtures import process_set, rank, ranks_meet, size, skip_alone

__all__ = ["process_set", "rank", "ranks_meet", "size", "skip_alone"]
