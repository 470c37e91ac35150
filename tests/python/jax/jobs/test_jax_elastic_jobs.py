"""An elastic job with JAX: a worker comes, another is killed in the middle of an epoch, all inside jit."""

from __future__ import annotations

import re
import sys

from job import horovodrun, run, run_elastic_example, write_script

LIMIT_SECONDS = 300  # importing JAX on a busy machine takes its time

PROGRAM = """
import os, signal, sys
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
import horovod.jax as hvd

LENGTH, MOST_EPOCHS = 24, 20_000
folder = Path(sys.argv[1])
hvd.init()

@jax.jit
def step(params, index):
    gradients = jax.grad(lambda p: (p["weight"] * index - 2.0 * index) ** 2 / LENGTH**2)(params)
    gradients = hvd.allreduce(gradients)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradients)

def once(name):
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def happen():
    if hvd.rank() != hvd.size() - 1:
        return
    if hvd.size() == 2 and once("grown"):
        (folder / "new").write_text("localhost:3")
        (folder / "new").rename(folder / "hosts")
    if hvd.size() == 3 and once("killed"):
        os.kill(os.getpid(), signal.SIGKILL)

@hvd.elastic.run
def train(state):
    while state.indices.epoch < MOST_EPOCHS:
        for index in state.indices:
            state.params = step(state.params, jnp.float32(index))
            state.seen = (*state.seen, *np.asarray(hvd.allgather(jnp.array([index]))).tolist())
            state.indices.record_batch(1)
            state.commit()
            if len(state.seen) >= LENGTH // 2:
                happen()
        assert set(state.seen) == set(range(LENGTH)), sorted(state.seen)
        assert len(state.seen) - LENGTH < hvd.size(), sorted(state.seen)
        if (folder / "killed").exists() and hvd.size() == 2:
            return
        state.seen = ()
        state.indices.set_epoch(state.indices.epoch + 1)
        state.commit()
    raise SystemExit("no worker has come")

params = {"weight": jnp.float32(hvd.rank())}
state = hvd.elastic.JaxState(params=params, indices=hvd.elastic.ElasticIndices(LENGTH), seen=())
train(state)
weights = np.asarray(hvd.allgather(state.params["weight"].reshape(1)))
assert (weights == weights[0]).all(), weights
print("done: rank", hvd.rank(), "of", hvd.size(), flush=True)
"""


def test_a_worker_comes_and_the_others_go_on_when_one_is_killed(tmp_path):
    script = write_script(tmp_path, PROGRAM)
    (tmp_path / "hosts").write_text("localhost:2")
    options = ["-np", "2", "--min-np", "2", "--max-np", "3", "--blacklist-cooldown-range", "600", "600"]
    options += ["--host-discovery-script", f"cat {tmp_path}/hosts"]

    # Who comes has traced nothing yet: names that the others count on would never meet its own.
    job = run(
        [horovodrun(), *options, sys.executable, script, str(tmp_path)],
        LIMIT_SECONDS,
        JAX_PLATFORMS="cpu",
        HOROVOD_STALL_CHECK_TIME_SECONDS="30",
        HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="60",
    )

    assert job.code == 0, job.output
    assert len(re.findall(r"done: rank \d of 2", job.output)) == 2, job.output
    assert "was killed by signal 9 (Killed); 2 of at least 2 workers remain: new epoch 3" in job.output, (
        job.output
    )


REPLACED = """
import os, signal, sys
from pathlib import Path
import jax, jax.numpy as jnp
import horovod.jax as hvd

killed = Path(sys.argv[1]) / "killed"
hvd.init()

@hvd.elastic.run
def train(state):
    total = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum))  # another program each time that we come here
    while state.step < 6:
        assert total(jnp.ones(3))[0] == hvd.size()
        state.step += 1
        state.commit()
        if state.step == 3 and hvd.rank() == 0 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

train(hvd.elastic.JaxState(step=0))
print("done: rank", hvd.rank(), "of", hvd.size(), flush=True)
"""


def test_a_worker_that_is_replaced_meets_the_others_though_their_number_is_the_same(tmp_path):
    script = write_script(tmp_path, REPLACED)
    options = ["-np", "2", "--min-np", "2", "--blacklist-cooldown-range", "1", "1"]

    job = run(
        [horovodrun(), *options, sys.executable, script, str(tmp_path)],
        LIMIT_SECONDS,
        JAX_PLATFORMS="cpu",
        HOROVOD_STALL_CHECK_TIME_SECONDS="15",
        HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="30",
    )

    assert job.code == 0, job.output
    assert len(re.findall(r"done: rank \d of 2", job.output)) == 2, job.output


def test_the_example_trains_on_the_hosts_of_its_script(tmp_path):
    options = ("--epochs", "2", "--samples", "128", "--seconds-per-step", "0")

    job = run_elastic_example(tmp_path, "jax_regression", *options, JAX_PLATFORMS="cpu")

    assert job.code == 0, job.output
    assert len(re.findall(r"rank \d is done after 2 epochs", job.output)) == 2, job.output
