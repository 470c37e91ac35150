"""How far apart the cores are right now: the round trip of one cache line between ranks 0 and 1.

A hypervisor moves virtual CPUs between neighbouring cores and other sockets at any moment, and this
changes every figure by factors. bench/placement.h says more.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from pathlib import Path
from typing import Final

from .readings import NO_PLACEMENT
from .world import World

LIBRARY_VARIABLE: Final = "HVD_BENCH_LINE"
NEAR_LIMIT_NS: Final = 200.0
"""As kNearLimitNs of bench/placement_limit.h."""

_LINE_BYTES: Final = 4096


class Placement:
    """The probe; collective."""

    def __init__(self, world: World) -> None:
        """Map a line that all ranks share. With more ranks than cores they wander: no probe."""
        self._world = world
        library = os.environ.get(LIBRARY_VARIABLE)
        cores = len(os.sched_getaffinity(0))
        self._is_used = library is not None and 2 <= world.size <= cores  # noqa: PLR2004 - two play
        if library is None or not self._is_used:
            return
        self._round_trip_ns = ctypes.CDLL(library).hvd_bench_round_trip_ns
        self._round_trip_ns.argtypes = (ctypes.c_void_p, ctypes.c_int)
        self._round_trip_ns.restype = ctypes.c_double
        self._memory = _shared_memory(world)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))

    def round_trip_ns(self) -> float:
        """Probe; the same value on all ranks."""
        if not self._is_used:
            return NO_PLACEMENT
        self._world.barrier()
        nanoseconds = 0.0
        if self._world.rank < 2:  # noqa: PLR2004 - one serves, one answers
            nanoseconds = self._round_trip_ns(self._address, self._world.is_first)
        return self._world.from_first(nanoseconds)


def _shared_memory(world: World) -> mmap.mmap:
    name = None
    if world.is_first:
        with tempfile.NamedTemporaryFile(dir="/dev/shm", delete=False) as file:
            file.write(bytes(_LINE_BYTES))
            name = file.name
    path = Path(world.object_from_first(name))
    with path.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), _LINE_BYTES)
    world.barrier()
    if world.is_first:
        path.unlink()
    return memory
