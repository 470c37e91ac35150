"""A process beside the ranks that stops and continues them by signals, as an overloaded host does.

Ranks ask for it through a pipe; it ends when all of them have ended.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import select
import signal
import struct
import time

_REQUEST = struct.Struct("<idd")


def ask(pipe: int, rank: int, after_ms: float, for_ms: float) -> None:
    """Have the process of a rank stopped; returns at once. Small enough to be written in one piece."""
    os.write(pipe, _REQUEST.pack(rank, after_ms, for_ms))


def serve(pipe: int, processes: list[int]) -> None:
    """Obey until nobody can ask any more. The processes by rank must not be reaped before."""
    due: list[tuple[float, int, int]] = []
    is_open = True
    while is_open or due:
        timeout_ms = max(due[0][0] - time.monotonic(), 0) * 1000 if due else None
        poller = select.poll()
        if is_open:
            poller.register(pipe, select.POLLIN)
        if poller.poll(timeout_ms):
            request = os.read(pipe, _REQUEST.size)
            is_open = bool(request)
            if is_open:
                rank, after_ms, for_ms = _REQUEST.unpack(request)
                begin = time.monotonic() + after_ms / 1000
                heapq.heappush(due, (begin, signal.SIGSTOP, processes[rank]))
                heapq.heappush(due, (begin + for_ms / 1000, signal.SIGCONT, processes[rank]))
        while due and due[0][0] <= time.monotonic():
            _, number, process = heapq.heappop(due)
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
