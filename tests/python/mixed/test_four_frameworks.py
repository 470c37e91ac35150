"""A job in which every rank uses another framework: what they exchange has nothing of a framework in it.

MXNet needs an older NumPy than the others, and so has an environment of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from job import horovodrun, run, write_script

MXNET_PYTHON = Path(__file__).resolve().parents[3] / ".venv-mxnet/bin/python"
LIMIT_SECONDS = 240  # four frameworks are imported, on two cores

# Each gives its rank + 1, under the same names, and says what it got as plain numbers.
SIDES = {
    "torch": """
import torch, horovod.torch as hvd
hvd.init()
r = hvd.rank()
total = hvd.allreduce(torch.full((5,), r + 1.0), op=hvd.Sum, name="total").tolist()
pair = [torch.ones(2), torch.full((3,), float(r))]
group = hvd.grouped_allreduce(pair, op=hvd.Max, name="group")[1].tolist()
rows = hvd.allgather(torch.full((r + 1, 1), float(r)), name="rows").flatten().tolist()
root = hvd.broadcast(torch.full((2,), float(r)), 3, name="root").tolist()
""",
    "tensorflow": """
import tensorflow as tf, horovod.tensorflow as hvd
hvd.init()
r = hvd.rank()
graph = tf.function(lambda x: hvd.allreduce(x, op=hvd.Sum, name="total"))
total = graph(tf.fill([5], r + 1.0)).numpy().tolist()
pair = [tf.ones([2]), tf.fill([3], float(r))]
group = hvd.grouped_allreduce(pair, op=hvd.Max, name="group")[1].numpy().tolist()
rows = hvd.allgather(tf.fill([r + 1, 1], float(r)), name="rows").numpy().flatten().tolist()
root = hvd.broadcast(tf.fill([2], float(r)), 3, name="root").numpy().tolist()
""",
    "jax": """
import jax, jax.numpy as jnp, horovod.jax as hvd
hvd.init()
r = hvd.rank()
total = jax.jit(lambda x: hvd.allreduce(x, op=hvd.Sum, name="total"))(jnp.full(5, r + 1.0)).tolist()
group = hvd.grouped_allreduce([jnp.ones(2), jnp.full(3, float(r))], op=hvd.Max, name="group")[1].tolist()
rows = hvd.allgather(jnp.full((r + 1, 1), float(r)), name="rows").flatten().tolist()
root = hvd.broadcast(jnp.full(2, float(r)), 3, name="root").tolist()
""",
    "mxnet": """
import mxnet as mx, horovod.mxnet as hvd
hvd.init()
r = hvd.rank()
total = hvd.allreduce(mx.nd.full((5,), r + 1), op=hvd.Sum, name="total").asnumpy().tolist()
pair = [mx.nd.ones((2,)), mx.nd.full((3,), r)]
group = hvd.grouped_allreduce(pair, op=hvd.Max, name="group")[1].asnumpy().tolist()
rows = hvd.allgather(mx.nd.full((r + 1, 1), r), name="rows").asnumpy().flatten().tolist()
root = hvd.broadcast(mx.nd.full((2,), r), 3, name="root").asnumpy().tolist()
""",
}
END = """
import sys
print("result", total, group, rows, root, hvd.allgather_object(sys.argv[1]), flush=True)
"""
CHOOSE = """
import os, sys
name = ("torch", "tensorflow", "jax", "mxnet")[int(os.environ["HOROVOD_RANK"])]
python = sys.argv[1] if name == "mxnet" else sys.executable
os.execv(python, [python, os.path.join(os.path.dirname(__file__), name + ".side"), name])
"""
EXPECTED = (
    "result [10.0, 10.0, 10.0, 10.0, 10.0] [3.0, 3.0, 3.0]"
    " [0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0] [3.0, 3.0]"
    " ['torch', 'tensorflow', 'jax', 'mxnet']"
)


def test_a_rank_of_each_framework_in_one_job(tmp_path):
    if not MXNET_PYTHON.exists():
        pytest.skip("needs .venv-mxnet (./dev setup mxnet)")
    for name, text in SIDES.items():
        (tmp_path / f"{name}.side").write_text(text + END)
    script = write_script(tmp_path, CHOOSE)

    ended = run(
        [horovodrun(), "-np", "4", sys.executable, script, str(MXNET_PYTHON)],
        LIMIT_SECONDS,
        JAX_PLATFORMS="cpu",
        OMP_NUM_THREADS="1",
        TF_CPP_MIN_LOG_LEVEL="3",
    )

    assert ended.code == 0, ended.output
    assert ended.output.count(EXPECTED) == 4, ended.output
