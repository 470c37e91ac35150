"""Whoever waits for a late rank really waits, and lets the other threads of its Python go on meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import horovod.jax as hvd

LIMIT_SECONDS = 60
TURNS = 50


WAITS = {
    "barrier": lambda _: hvd.barrier(),
    "barrier in jit": jax.jit(lambda x: (hvd.barrier(), x + 1)[1]),
    "allreduce": hvd.allreduce,
    "allreduce in jit": jax.jit(hvd.allreduce),
    "allgather": hvd.allgather,
    "broadcast": lambda x: hvd.broadcast(x, hvd.size() - 1),
}


def _wait_until(paths):
    end = time.monotonic() + LIMIT_SECONDS
    while missing := [path.name for path in paths if not path.exists()]:
        assert time.monotonic() < end, f"nothing seen of {missing}"
        time.sleep(0.005)


@pytest.mark.disagreement
@pytest.mark.parametrize("operation", WAITS.values(), ids=WAITS.keys())
def test_a_late_rank_is_waited_for(operation, rank, size, tmp_path):
    folder = Path(hvd.broadcast_object(str(tmp_path)))
    x = jnp.ones(3)
    jax.block_until_ready(operation(x))  # from here on it is compiled
    if rank == size - 1:
        # It is late for as long as a thread of every other rank needs for some turns.
        _wait_until([folder / f"going.{other}" for other in range(size - 1)])
        (folder / "late").touch()
        jax.block_until_ready(operation(x))
        return

    begun = threading.Event()

    def turn():
        begun.wait(LIMIT_SECONDS)
        for _ in range(TURNS):  # each of them takes the GIL
            time.sleep(0.005)
        (folder / f"going.{rank}").touch()

    thread = threading.Thread(target=turn)
    thread.start()
    begun.set()
    jax.block_until_ready(operation(x))

    assert (folder / "late").exists()
    thread.join(LIMIT_SECONDS)
    assert not thread.is_alive()
