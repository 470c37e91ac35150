"""Whole jobs: a rank that dies, ranks of two frameworks, the examples."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from pathlib import Path

import pytest
from job import horovodrun, run, run_job, run_several
from pages import pages_with_programs, run_pages

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = ROOT / "examples"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}

LIMIT_SECONDS = 240  # importing TensorFlow on a busy machine takes its time

START = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher ends ranks that have something to say
import tensorflow as tf
import horovod.tensorflow as hvd
hvd.init()
hvd.allreduce(tf.ones([1]))
if hvd.rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
"""

WAYS = {
    "eager": "hvd.allreduce(tf.ones([4]), name='never')",
    "function": (
        "tf.function(lambda x: [hvd.allreduce(x * i, name=f'never_{i}') for i in range(20)])(tf.ones([4]))"
    ),
    "session": """
    with tf.Graph().as_default():
        place = tf.compat.v1.placeholder_with_default([1.0], [1])
        result = [hvd.allreduce(place * i, name=f'never_{i}') for i in range(20)]
        with tf.compat.v1.Session() as session:
            session.run(result)
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_killed_peer_is_an_error_on_every_other_rank(way, tmp_path):
    job = run_job(
        tmp_path,
        3,
        START
        + f"""
try:
    {WAYS[way].strip()}
except tf.errors.UnknownError as error:
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


def need(module):
    """Old releases of TensorFlow are tested without other frameworks."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def need_keras_3():
    """Its place is taken by Keras 2 in the environments of TensorFlow before 2.16."""
    if int(importlib.metadata.version("keras").split(".")[0]) < 3:
        pytest.skip("Keras 3 is not installed")


def test_ranks_of_two_frameworks_work_together(tmp_path):
    need("torch")
    job = run_job(
        tmp_path,
        2,
        """
import os
if os.environ["HOROVOD_RANK"] == "0":
    import torch
    import horovod.torch as hvd
    hvd.init()
    for name in (None, "shared"):
        results = [hvd.allreduce(torch.full((5,), 1.0), op=hvd.Sum, name=name).tolist()]
    results += [hvd.allgather(torch.ones(1, 2)).tolist(), hvd.broadcast(torch.zeros(2), 1).tolist()]
else:
    import tensorflow as tf
    import horovod.tensorflow as hvd
    hvd.init()
    for name in (None, "shared"):
        results = [hvd.allreduce(tf.fill([5], 2.0), op=hvd.Sum, name=name).numpy().tolist()]
    results += [hvd.allgather(tf.zeros([2, 2])).numpy().tolist()]
    results += [hvd.broadcast(tf.ones([2]), 1).numpy().tolist()]
assert results == [[3.0] * 5, [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [1.0, 1.0]], results
print("agreed", hvd.rank())
""",
        limit_seconds=LIMIT_SECONDS,
        **QUIET,
    )

    assert job.code == 0, job.output
    assert "agreed 0" in job.output
    assert "agreed 1" in job.output


PROGRAMS = [
    ("tensorflow/tensorflow1_mnist_style.py", {}, ["--steps", "20"]),
    ("keras/fit.py", {"KERAS_BACKEND": "tensorflow"}, ["--epochs", "2"]),
    ("keras/fit.py", {"KERAS_BACKEND": "torch"}, ["--epochs", "2"]),
    ("keras/fit.py", {"KERAS_BACKEND": "jax"}, ["--epochs", "2"]),
]


@pytest.mark.parametrize(("program", "variables", "arguments"), PROGRAMS)
def test_examples(program, variables, arguments, tmp_path):
    need(variables.get("KERAS_BACKEND", "tensorflow"))
    if program.startswith("keras/"):
        need_keras_3()
    done = run(
        [horovodrun(), "-np", "2", sys.executable, str(EXAMPLES / program), *arguments],
        limit_seconds=LIMIT_SECONDS,
        HVD_EXAMPLE_FOLDER=str(tmp_path),
        **QUIET,
        **variables,
    )

    assert done.code == 0, done.output
    assert "done" in done.output


def test_eager_examples():
    programs = [
        (EXAMPLES / "tensorflow/gradient_tape.py", ["--steps", "20"]),
        (EXAMPLES / "tensorflow/synthetic_benchmark.py", ["--small", "--iterations", "2", "--batches", "2"]),
    ]

    done = run_several(2, programs, limit_seconds=LIMIT_SECONDS, **QUIET)

    assert done.code == 0, done.output
    assert done.output.count("ended: ") == 2 * len(programs), done.output
    assert done.output.count("done") == len(programs), done.output


@pytest.mark.parametrize("page", pages_with_programs("tensorflow"), ids=lambda page: page.parent.name)
def test_programs_of_the_documentation(page):
    if page.parent.name == "keras":
        need_keras_3()

    done = run_pages([page], limit_seconds=LIMIT_SECONDS, **QUIET)

    assert done.code == 0, done.output
    assert done.output.count("is done") == 2


def test_links_of_the_documentation():
    pages = [*(ROOT / "docs/tensorflow").glob("*.md"), *(ROOT / "docs/keras").glob("*.md")]
    for page in [*pages, EXAMPLES / "tensorflow/README.md"]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page}: {link}"
