"""Jobs of MXNet that a test starts: lost peers, failures, engines, memory, examples."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from job import horovodrun, run, run_job
from pages import pages_with_programs, run_pages

ROOT = Path(__file__).resolve().parents[4]

BEGIN = """
import os, signal, sys
import mxnet as mx
import numpy as np
import horovod.mxnet as hvd
hvd.init()
rank, size = hvd.rank(), hvd.size()
"""


def test_a_killed_peer_raises_where_a_dependent_array_is_read(tmp_path):
    ended = run_job(
        tmp_path,
        3,
        BEGIN
        + """
x = mx.nd.ones((4,))
hvd.allreduce_(x).wait_to_read()
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # horovodrun ends the others
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
y = hvd.allreduce(x, name="lost") + 1
try:
    y.asnumpy()
except mx.base.MXNetError as error:
    print(f"rank {rank} raised: {error}", flush=True)
    sys.exit(7)
""",
        HOROVOD_TERMINATION_GRACE_SECONDS="60",
    )

    assert ended.code != 0
    for rank in (0, 2):
        said = [line for line in ended.output.splitlines() if f"rank {rank} raised" in line]
        assert said, ended.output
        assert "rank 1" in said[0]


def test_a_killed_peer_raises_in_what_blocks(tmp_path):
    ended = run_job(
        tmp_path,
        2,
        BEGIN
        + """
hvd.barrier()
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # horovodrun ends the others
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    hvd.allgather(mx.nd.ones((4,)))
except mx.base.MXNetError as error:
    print(f"rank {rank} raised: {error}", flush=True)
""",
    )

    assert ended.code != 0
    assert "rank 0 raised" in ended.output


def test_a_rank_that_fails_with_operations_under_way_ends(tmp_path):
    ended = run_job(
        tmp_path,
        2,
        BEGIN
        + """
hvd.allreduce(mx.nd.ones((4,)), name="before").wait_to_read()
if rank == 1:
    late = hvd.allreduce(mx.nd.ones((4,)), name="nobody else has this")
    raise SystemError("rank 1 has had enough")
hvd.allreduce(mx.nd.ones((4,)), name="waits").asnumpy()
""",
    )

    assert ended.code != 0
    assert "rank 1 has had enough" in ended.output
    assert "rank 1" in ended.output.splitlines()[-1]


def test_operations_that_nobody_reads_do_not_keep_a_process(tmp_path):
    ended = run_job(
        tmp_path,
        2,
        BEGIN
        + """
results = [hvd.allreduce(mx.nd.ones((40,)), name=f"unread.{i}") for i in range(50)]
print("end of the program", flush=True)
""",
    )

    assert ended.output.count("end of the program") == 2


def test_a_rank_that_leaves_first_finishes_what_it_has_pushed(tmp_path):
    ended = run_job(
        tmp_path,
        2,
        BEGIN
        + """
def steps():
    x = mx.nd.ones((300, 300))
    for i in range(20):
        x = hvd.allreduce(mx.nd.dot(x, x) * 0 + 1, op=hvd.Sum, name="step")
    return x
for _ in range(2):
    x = steps()
    assert rank == 1 or x[0, 0].asscalar() == 2.0
    hvd.shutdown()
    hvd.init()
x = steps()
if rank == 0:
    print("rank 0 has", x[0, 0].asscalar())
""",
    )

    assert ended.code == 0, ended.output
    assert "rank 0 has 2.0" in ended.output


@pytest.mark.parametrize("engine", ["NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice"])
def test_every_engine_of_mxnet(tmp_path, engine):
    ended = run_job(
        tmp_path,
        2,
        BEGIN
        + """
x = mx.nd.full((4, 3), rank + 1)
hvd.allreduce_(x, op=hvd.Sum)
group = hvd.grouped_allreduce([x, x * 2], op=hvd.Sum, name="group")
assert x.asnumpy().tolist() == [[3.0] * 3] * 4
assert [one.asnumpy().max() for one in group] == [6.0, 12.0]
assert hvd.broadcast(mx.nd.full((2,), rank), 1).asnumpy().tolist() == [1.0, 1.0]
try:
    hvd.allreduce(mx.nd.ones((2 + rank,)), name="bad").asnumpy()
except mx.base.MXNetError as error:
    print("raised:", error, flush=True)
""",
        MXNET_ENGINE_TYPE=engine,
    )

    assert ended.code == 0, ended.output
    assert ended.output.count("raised:") == 2


def test_priorities_order_what_waits_for_the_engine(tmp_path):
    timeline = tmp_path / "timeline.json"
    ended = run_job(
        tmp_path,
        2,
        BEGIN
        + """
import ctypes, threading

# The one thread that works on priorities is kept busy until everything is pushed.
begun, gate = threading.Event(), threading.Event()
def hold(_context, _parameter):
    begun.set()
    assert gate.wait(60)
Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
held, prioritized, cpu = Function(hold), ctypes.c_int(3), (ctypes.c_int * 2)(1, 0)
written = mx.nd.ones((1,))
handle = (ctypes.c_void_p * 1)(written.handle.value)
push = mx.base._LIB.MXEnginePushSyncND
assert push(held, None, None, cpu, None, 0, handle, 1, ctypes.byref(prioritized), 0, b"hold") == 0
assert begun.wait(60)

arrays = {priority: mx.nd.full((2000,), rank + 1) for priority in range(-4, 4)}
for array in arrays.values():
    array.wait_to_read()
pushed = list(arrays)[3 * rank:] + list(arrays)[:3 * rank]
for priority in pushed:
    hvd.allreduce_(arrays[priority], op=hvd.Sum, name=f"priority{priority}", priority=priority)
gate.set()
assert all((array.asnumpy() == 3.0).all() for array in arrays.values())
hvd.shutdown()
""",
        HOROVOD_TIMELINE=str(timeline),
        MXNET_CPU_PRIORITY_NTHREADS="1",
    )

    assert ended.code == 0, ended.output
    found = re.findall(r'"name":"allreduce\.priority(-?\d)"', timeline.read_text())
    assert found == [str(priority) for priority in range(3, -5, -1)]


STEPS = """
import gc, resource
def resident():
    gc.collect()
    mx.nd.waitall()
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
arrays = [mx.nd.ones((50, 40)) for _ in range(4)]
def steps(count):
    for _ in range(count):
        for index, array in enumerate(arrays):
            hvd.allreduce_(array, name=str(index))
        hvd.allreduce(arrays[0])
        hvd.grouped_allreduce(arrays[1:3], name="group")
        hvd.allgather(arrays[3])
        arrays[0].wait_to_read()
steps(WARM)
before = resident()
steps(COUNT)
grown = resident() - before
assert grown < 8 << 20, f"rank {rank} has grown by {grown} bytes"
print("flat", flush=True)
"""


def check_memory(folder: Path, warm: int, count: int) -> None:
    program = BEGIN + STEPS.replace("WARM", str(warm)).replace("COUNT", str(count))
    ended = run_job(folder, 2, program, 600)

    assert ended.code == 0, ended.output
    assert ended.output.count("flat") == 2


def test_memory_stays_flat(tmp_path):
    check_memory(tmp_path, 300, 700)


@pytest.mark.soak
def test_memory_stays_flat_for_ten_thousand_steps(tmp_path):
    check_memory(tmp_path, 1000, 10000)


def test_init_and_shutdown_again(tmp_path):
    ended = run_job(
        tmp_path,
        2,
        BEGIN
        + """
for _ in range(3):
    assert hvd.allreduce(mx.nd.ones((2,)), op=hvd.Sum).asnumpy().tolist() == [2.0, 2.0]
    if rank == 0:
        hvd.allreduce(mx.nd.ones((2,)), name="only here")
    hvd.shutdown()
    try:
        hvd.allreduce(mx.nd.ones((2,))).asnumpy()
        raise SystemExit("an operation without a job has succeeded")
    except mx.base.MXNetError:
        pass
    hvd.init()
""",
    )

    assert ended.code == 0, ended.output


@pytest.mark.parametrize(
    ("example", "arguments"),
    [
        ("gluon_cnn.py", ["--epochs", "1", "--images", "256", "--batch-size", "64", "--fp16"]),
        ("module_mlp.py", ["--epochs", "2", "--batch-size", "64"]),
        (
            "synthetic_benchmark.py",
            ["--steps", "2", "--warm-up", "1", "--batch-size", "1", "--model", "squeezenet1.1"],
        ),
    ],
)
def test_examples_run(example, arguments):
    path = ROOT / "examples/mxnet" / example

    ended = run([horovodrun(), "-np", "2", sys.executable, str(path), *arguments], 180)

    assert ended.code == 0, ended.output


def test_programs_of_the_documentation():
    pages = pages_with_programs("mxnet")

    done = run_pages(pages, limit_seconds=120)

    assert done.code == 0, done.output
    assert done.output.count("is done") == 2 * len(pages) > 0
