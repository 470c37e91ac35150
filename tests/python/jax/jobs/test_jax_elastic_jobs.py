"""An elastic job with JAX: a worker is killed in the middle of an epoch, the others go on inside jit."""

from __future__ import annotations

import re
import sys

from job import horovodrun, run, write_script

LIMIT_SECONDS = 300  # importing JAX on a busy machine takes its time

PROGRAM = """
import os, signal, sys
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
import horovod.jax as hvd

LENGTH = 48
hvd.init()

@jax.jit
def step(params, index):
    gradients = jax.grad(lambda p: (p["weight"] * index - 2.0 * index) ** 2 / LENGTH**2)(params)
    gradients = hvd.allreduce(gradients)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradients)

@hvd.elastic.run
def train(state):
    for index in state.indices:
        state.params = step(state.params, jnp.float32(index))
        state.seen = (*state.seen, *np.asarray(hvd.allgather(jnp.array([index]))).tolist())
        state.indices.record_batch(1)
        state.commit()
        if len(state.seen) >= LENGTH // 2 and hvd.rank() == hvd.size() - 1 and not Path(sys.argv[1]).exists():
            Path(sys.argv[1]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    assert set(state.seen) == set(range(LENGTH)), sorted(state.seen)
    assert len(state.seen) - LENGTH < hvd.size(), sorted(state.seen)

params = {"weight": jnp.float32(hvd.rank())}
state = hvd.elastic.JaxState(params=params, indices=hvd.elastic.ElasticIndices(LENGTH), seen=())
train(state)
weights = np.asarray(hvd.allgather(state.params["weight"].reshape(1)))
assert (weights == weights[0]).all(), weights
print("done: rank", hvd.rank(), "of", hvd.size(), flush=True)
"""


def test_the_others_go_on_inside_jit_when_one_is_killed(tmp_path):
    script = write_script(tmp_path, PROGRAM)
    options = ["-np", "3", "--min-np", "2", "--blacklist-cooldown-range", "600", "600"]

    job = run(
        [horovodrun(), *options, sys.executable, script, str(tmp_path / "killed")],
        LIMIT_SECONDS,
        JAX_PLATFORMS="cpu",
    )

    assert job.code == 0, job.output
    assert len(re.findall(r"done: rank \d of 2", job.output)) == 2, job.output
    assert "was killed by signal 9 (Killed); 2 of at least 2 workers remain: new epoch 2" in job.output, (
        job.output
    )
