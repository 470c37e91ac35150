"""The stand-ins are strict: events that are recorded again; ranks of NCCL that call what they must not."""

from __future__ import annotations

import ctypes as c
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

LIMIT_SECONDS = 60  # some milliseconds on a quiet machine
COUNT = 4
INT32, FLOAT32, SUM, MAX = 2, 7, 0, 2
NOT_READY = 600
INVALID_USAGE, IN_PROGRESS = 5, 7

cuda = c.CDLL(os.environ["HOROVOD_CUDA_LIB"], mode=c.RTLD_GLOBAL)
nccl = c.CDLL(os.environ["HOROVOD_NCCL_LIB"])
nccl.standin_nccl_mismatches.restype = c.c_int64


class Id(c.Structure):
    _fields_ = (("text", c.c_char * 128),)


class Rank:
    """A stream, memory and a communicator; made by a thread of its own, as it waits for the other one."""

    def __init__(self, rank: int, name: Id) -> None:
        self.comm, self.stream, self.memory = c.c_void_p(), c.c_void_p(), c.c_uint64()
        context = c.c_void_p()
        assert cuda.cuDevicePrimaryCtxRetain(c.byref(context), rank) == 0
        cuda.cuCtxPushCurrent_v2(context)
        assert cuda.cuStreamCreateWithPriority(c.byref(self.stream), 1, 0) == 0
        assert cuda.cuMemAlloc_v2(c.byref(self.memory), c.c_size_t(1024)) == 0
        assert nccl.ncclCommInitRank(c.byref(self.comm), 2, name, rank) == 0

    def allreduce(self, count: int = COUNT, dtype: int = FLOAT32, op: int = SUM) -> int:
        m = self.memory
        return int(nccl.ncclAllReduce(m, m, c.c_size_t(count), dtype, op, self.comm, self.stream))

    def broadcast(self, root: int) -> int:
        m = self.memory
        return int(nccl.ncclBroadcast(m, m, c.c_size_t(COUNT), FLOAT32, root, self.comm, self.stream))

    def send(self, count: int) -> int:
        return int(nccl.ncclSend(self.memory, c.c_size_t(count), FLOAT32, 1, self.comm, self.stream))

    def receive(self, count: int) -> int:
        return int(nccl.ncclRecv(self.memory, c.c_size_t(count), FLOAT32, 0, self.comm, self.stream))

    def is_running(self) -> bool:
        return int(cuda.cuStreamQuery(self.stream)) == NOT_READY

    def state(self) -> int:
        state = c.c_int()
        assert nccl.ncclCommGetAsyncError(self.comm, c.byref(state)) == 0
        return state.value

    def abort(self) -> None:
        assert nccl.ncclCommAbort(self.comm) == 0
        assert cuda.cuStreamSynchronize(self.stream) == 0


def meet() -> tuple[Rank, Rank]:
    name, made = Id(), {}
    assert nccl.ncclGetUniqueId(c.byref(name)) == 0

    def join(rank: int) -> None:
        made[rank] = Rank(rank, name)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made[0], made[1]


def check_that_it_hangs(what: str, first: Callable[[Rank], int], second: Callable[[Rank], int]) -> None:
    before, limit = int(nccl.standin_nccl_mismatches()), time.monotonic() + LIMIT_SECONDS
    a, b = meet()
    assert first(a) == 0
    assert second(b) == 0
    while nccl.standin_nccl_mismatches() == before:
        assert time.monotonic() < limit, f"{what}: not noticed"
        assert a.is_running() or b.is_running(), f"{what}: both went through"
        time.sleep(0.001)
    assert a.is_running() or b.is_running(), what
    a.abort()
    b.abort()


def check_mismatches() -> None:
    one, other = Rank.allreduce, Rank.broadcast
    cases: dict[str, tuple[Callable[[Rank], int], Any]] = {
        "kind": (one, lambda rank: other(rank, 0)),
        "count": (one, lambda rank: one(rank, count=COUNT - 1)),
        "dtype": (one, lambda rank: one(rank, dtype=INT32)),
        "operation": (one, lambda rank: one(rank, op=MAX)),
        "root": (lambda rank: other(rank, 0), lambda rank: other(rank, 1)),
        "length": (lambda rank: rank.send(COUNT), lambda rank: rank.receive(COUNT - 1)),
    }
    for what, (first, second) in cases.items():
        check_that_it_hangs(what, first, second)
    a, b = meet()
    assert a.allreduce() == b.allreduce() == 0
    for rank in (a, b):
        assert cuda.cuStreamSynchronize(rank.stream) == 0, "the same calls go through"
        rank.abort()


def check_late_launches() -> None:
    a, b = meet()
    assert nccl.ncclGroupStart() == 0
    assert a.allreduce() == 0
    assert nccl.ncclGroupEnd() == IN_PROGRESS
    assert a.state() == IN_PROGRESS
    assert a.allreduce() == INVALID_USAGE
    assert nccl.ncclRedOpDestroy(5, a.comm) == INVALID_USAGE
    assert not a.is_running(), "nothing is in the stream yet"
    a.abort()
    b.abort()


def check_events() -> None:
    """Record an event again, elsewhere: who waits already waits for what was recorded before."""
    context, event, order, gate = c.c_void_p(), c.c_void_p(), [], threading.Event()
    assert cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
    cuda.cuCtxPushCurrent_v2(context)
    assert cuda.cuEventCreate(c.byref(event), 2) == 0
    late, waiting, other = c.c_void_p(), c.c_void_p(), c.c_void_p()
    for stream in (late, waiting, other):
        assert cuda.cuStreamCreateWithPriority(c.byref(stream), 1, 0) == 0
    function = c.CFUNCTYPE(None, c.c_void_p)
    wait, note = function(lambda _: gate.wait()), function(lambda number: order.append(number or 0))
    cuda.cuLaunchHostFunc(late, wait, None)
    cuda.cuLaunchHostFunc(late, note, c.c_void_p(1))
    cuda.cuEventRecord(event, late)
    cuda.cuStreamWaitEvent(waiting, event, 0)
    cuda.cuLaunchHostFunc(waiting, note, c.c_void_p(2))
    cuda.cuEventRecord(event, other)
    for _ in range(200):  # so long, `waiting` could have gone on
        cuda.cuLaunchHostFunc(other, note, c.c_void_p(3))
        cuda.cuStreamSynchronize(other)
    assert order == [3] * 200, order
    gate.set()
    cuda.cuStreamSynchronize(waiting)
    assert order[200:] == [1, 2], order


assert cuda.cuInit(0) == 0
{"mismatches": check_mismatches, "launches": check_late_launches, "events": check_events}[sys.argv[1]]()
print("RULES KEPT")
