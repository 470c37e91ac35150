"""Whole jobs: a rank that dies, two frameworks, several devices, jax.distributed, memory, examples."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from job import horovodrun, run, run_job
from pages import pages_with_programs, run_pages

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
LIMIT_SECONDS = 240  # importing JAX on a busy machine takes its time
QUIET = {"JAX_PLATFORMS": "cpu"}

START = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher ends ranks that have something to say
import jax, jax.numpy as jnp
import horovod.jax as hvd
hvd.init()
jax.block_until_ready(hvd.allreduce(jnp.ones(1)))
if hvd.rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
"""

WAYS = {
    "eager": "hvd.allreduce(jnp.ones(4), name='never')",
    "jit": "jax.jit(lambda x: [hvd.allreduce(x * i, name=f'never_{i}') for i in range(20)])(jnp.ones(4000))",
    "scan": "jax.jit(lambda x: jax.lax.scan(lambda c, _: (hvd.allreduce(c), None), x, None, 5))(jnp.ones(4))",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_peer_is_an_error_on_every_other_rank(way, tmp_path):
    job = run_job(
        tmp_path,
        3,
        START
        + f"""
try:
    jax.block_until_ready({WAYS[way]})
except jax.errors.JaxRuntimeError as error:
    print("rank", hvd.rank(), "saw the end of rank 1:", "rank 1" in str(error), flush=True)
    raise SystemExit(3)
""",
        limit_seconds=LIMIT_SECONDS,
        HOROVOD_TERMINATION_GRACE_SECONDS="60",
        **QUIET,
    )

    assert job.code != 0
    assert "rank 0 saw the end of rank 1: True" in job.output, job.output
    assert "rank 2 saw the end of rank 1: True" in job.output, job.output


# Programs that JAX starts later: it runs small ones at once.
STEPS = """
import sys, jax, jax.numpy as jnp
import horovod.jax as hvd
from horovod._core import leaving
hvd.init()
rank = hvd.rank()
ones = jnp.ones((400, 400))
step = jax.jit(lambda x: hvd.allreduce(jnp.tanh(x @ x)) ** 0)
jax.block_until_ready(step(ones))
def steps():
    x = ones
    for _ in range(10):
        x = step(x)
    return x
"""


def test_a_rank_that_leaves_first_finishes_its_steps(tmp_path):
    job = run_job(
        tmp_path,
        2,
        STEPS
        + """
for _ in range(2):
    x = steps()
    assert rank == 1 or float(x[0, 0]) == 1.0
    del x  # dispatched all the same
    hvd.shutdown()
    hvd.init()
kept = steps()
if rank == 0:
    print("rank 0 has", float(kept[0, 0]))
""",
        limit_seconds=LIMIT_SECONDS,
        **QUIET,
    )

    assert job.code == 0, job.output
    assert "rank 0 has 1.0" in job.output


def test_a_rank_that_fails_with_programs_under_way_ends(tmp_path):
    job = run_job(
        tmp_path,
        2,
        STEPS
        + """
lonely = jax.jit(lambda x: [hvd.allreduce(jnp.tanh(x @ x), name=f"nobody else has {i}") for i in range(3)])
if rank == 1:
    late = [lonely(ones), lonely(ones)]
    raise SystemError("rank 1 has had enough")
hvd.allreduce(ones, name="waits").block_until_ready()
""",
        limit_seconds=LIMIT_SECONDS,
        **QUIET,
    )

    assert job.code == 1, job.output
    assert "rank 1 has had enough" in job.output
    assert "rank 1" in job.output.splitlines()[-1]


def test_work_that_never_ends_keeps_no_job(tmp_path):
    job = run_job(
        tmp_path,
        2,
        STEPS
        + """
leaving.LIMIT_SECONDS = 0.5
late = jax.jit(lambda x: hvd.allreduce(jnp.tanh(x @ x), name=f"only rank {rank} has this"))(ones)
print("end of the program", flush=True)
""",
        limit_seconds=LIMIT_SECONDS,
        **QUIET,
    )

    assert job.output.count("end of the program") == 2, job.output
    assert "operations are still under way" in job.output


def test_ranks_of_two_frameworks_work_together(tmp_path):
    job = run_job(
        tmp_path,
        2,
        """
import os
if os.environ["HOROVOD_RANK"] == "0":
    import torch
    import horovod.torch as hvd
    hvd.init()
    results = [hvd.allreduce(torch.full((5,), 1.0), op=hvd.Sum, name=name).tolist() for name in (None, "x")]
    results += [hvd.allgather(torch.ones(1, 2)).tolist(), hvd.broadcast(torch.zeros(2), 1).tolist()]
else:
    import jax, jax.numpy as jnp
    import horovod.jax as hvd
    hvd.init()
    results = [hvd.allreduce(jnp.full(5, 2.0), op=hvd.Sum).tolist()]
    results += [jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum, name="x"))(jnp.full(5, 2.0)).tolist()]
    results += [hvd.allgather(jnp.zeros((2, 2))).tolist(), hvd.broadcast(jnp.ones(2), 1).tolist()]
assert results == [[3.0] * 5, [3.0] * 5, [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [1.0, 1.0]], results
print("agreed", hvd.rank())
""",
        limit_seconds=LIMIT_SECONDS,
        **QUIET,
    )

    assert job.code == 0, job.output
    assert "agreed 0" in job.output
    assert "agreed 1" in job.output


def test_several_local_devices_are_refused(tmp_path):
    job = run_job(
        tmp_path,
        1,
        """
import jax, jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
import horovod.jax as hvd
hvd.init()
mesh, rows = Mesh(jax.devices(), ("rows",)), PartitionSpec("rows")
mapped = jax.shard_map(hvd.allreduce, mesh=mesh, in_specs=rows, out_specs=rows)
for way in (hvd.allreduce, jax.jit(hvd.allreduce), jax.pmap(hvd.allreduce), mapped, hvd.allgather):
    try:
        way(jnp.ones((2, 3)))
    except ValueError as error:
        assert "2 local devices" in str(error) and "horovodrun -np 2" in str(error), error
    else:
        raise SystemExit("was not refused")
print("refused")
""",
        limit_seconds=LIMIT_SECONDS,
        XLA_FLAGS="--xla_force_host_platform_device_count=2",
        **QUIET,
    )

    assert job.code == 0, job.output
    assert "refused" in job.output


def test_beside_jax_distributed(tmp_path):
    job = run_job(
        tmp_path,
        2,
        """
import os, socket
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import horovod.jax as hvd
hvd.init()
place = None
if hvd.rank() == 0:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
place = hvd.broadcast_object(place)
jax.distributed.initialize(place, hvd.size(), hvd.rank())
hvd.init()
assert hvd.allreduce(jnp.ones(2), op=hvd.Sum).tolist() == [2.0, 2.0]
mesh = Mesh(jax.devices(), ("x",))
spread = jax.make_array_from_callback((2,), NamedSharding(mesh, PartitionSpec("x")), lambda _: jnp.ones(1))
try:
    hvd.allreduce(spread)
except ValueError as error:
    print("refused:", error, flush=True)
""",
        limit_seconds=LIMIT_SECONDS,
        **QUIET,
    )

    assert job.code == 0, job.output
    assert job.output.count("horovod does not need it") == 2, job.output
    assert job.output.count("refused: allreduce: got an array on 2 devices") == 2, job.output


@pytest.mark.parametrize("steps", [800, pytest.param(10_000, marks=pytest.mark.soak)])
def test_memory_stays_flat(steps, tmp_path):
    job = run_job(
        tmp_path,
        2,
        """
import jax, jax.numpy as jnp, os, pathlib
import horovod.jax as hvd
hvd.init()

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

program = jax.jit(lambda x: hvd.allreduce({"a": x, "b": x[:10]})["a"] + hvd.allreduce(x[:1000]).sum())
x = jnp.ones(10_000)
def steps(count):
    global x
    for _ in range(count):
        x = program(x) / 2
        hvd.allreduce(x)
        jax.grad(lambda v: hvd.allreduce(v).sum())(x)
        hvd.allgather(x[:10])
    jax.block_until_ready(x)
steps(200)
before = resident()
steps(int(os.environ["STEPS"]))
grown = resident() - before
assert grown < 8 << 20, f"grown by {grown} bytes"
print("flat", hvd.rank())
""",
        limit_seconds=LIMIT_SECONDS + steps / 10,
        STEPS=str(steps),
        **QUIET,
    )

    assert job.code == 0, job.output
    assert "flat 0" in job.output


PROGRAMS = {
    "jax/mlp.py": ["--steps", "20", "--batch", "32"],
    "jax/transformer.py": ["--steps", "4", "--small", "--batch", "4", "--sharded", "--compress"],
    "jax/synthetic_benchmark.py": [
        "--small",
        "--iterations",
        "2",
        "--batches",
        "2",
        "--batch",
        "8",
        "--compress",
    ],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_examples(program):
    done = run(
        [horovodrun(), "-np", "2", sys.executable, str(EXAMPLES / program), *PROGRAMS[program]],
        limit_seconds=LIMIT_SECONDS,
        **QUIET,
    )

    assert done.code == 0, done.output
    assert "done" in done.output


def test_programs_of_the_documentation():
    pages = pages_with_programs("jax")

    done = run_pages(pages, limit_seconds=LIMIT_SECONDS, **QUIET)

    assert done.code == 0, done.output
    assert done.output.count("is done") == 2 * len(pages) > 0
