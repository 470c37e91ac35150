"""A rank that broadcasts objects, by the commands of bench/engine_worker.h on standard input."""

from __future__ import annotations

import os
import struct

import horovod.torch as hvd

_COMMAND = struct.Struct("<IIQ")


def _object_of(size: int) -> list[dict[str, object]]:
    """Settings and counters, as a training loop would send them: about that many bytes as a pickle."""
    return [{"step": i, "name": f"layer{i}.weight", "rate": i / 7} for i in range(max(1, size // 48))]


def main() -> None:
    """Serve until the input ends."""
    hvd.init()
    while len(line := os.read(0, _COMMAND.size)) == _COMMAND.size:
        _, operations, size = _COMMAND.unpack(line)
        obj = _object_of(size) if hvd.rank() == 0 else None
        for _ in range(operations):
            hvd.broadcast_object(obj, root_rank=0)
        os.write(1, b"+")


main()
