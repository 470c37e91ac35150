"""The ranks of a job that measure together, and what they must agree on.

Uses Horovod's core for it, whatever framework the job measures.
"""

from __future__ import annotations

from array import array
from typing import Any

from horovod._core import _native, codes
from horovod._core.objects import broadcast_object


class World:
    """Made after hvd.init() of a front end."""

    def __init__(self) -> None:
        """Know this rank's place."""
        self.rank: int = _native.rank()
        self.size: int = _native.size()

    @property
    def is_first(self) -> bool:
        """Whether this is the rank whose clock and files count."""
        return self.rank == 0

    def barrier(self) -> None:
        """Wait for the others."""
        self.total(0.0)

    def largest(self, value: float) -> float:
        """Return the largest value of any rank."""
        return self._run(codes.ALLREDUCE, codes.MAX, value)

    def total(self, value: float) -> float:
        """Return the sum over the ranks."""
        return self._run(codes.ALLREDUCE, codes.SUM, value)

    def from_first(self, value: float) -> float:
        """Return rank 0's value."""
        return self._run(codes.BROADCAST, codes.SUM, value)

    def object_from_first(self, value: Any) -> Any:
        """Return rank 0's object."""
        return broadcast_object(value, root_rank=0, name="bench.object")

    def _run(self, kind: int, op: int, value: float) -> float:
        data = array("d", [value])
        address = data.buffer_info()[0]
        name = f"bench.{kind}.{op}"
        _native.run(
            kind=kind,
            dtype=codes.FLOAT64,
            reduce_op=op,
            shape=(1,),
            input=address,
            output=address,
            name=name,
            owner=data,
        )
        return data[0]
