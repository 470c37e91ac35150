"""Every rank of a job runs the same tests; these fixtures keep the ranks together.

    horovodrun -np 2 python -m pytest tests/python/tensorflow/parallel

A test that fails on one rank leaves the others in a collective. The stall limit ends that wait with
an error on all ranks, and the next test begins with a new init.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest

# Read by the core at init.
os.environ.setdefault("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20")
os.environ.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", "60")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

# pytest numbers and prunes the temporary folders of earlier runs; ranks that share a root would prune
# each other's.
_RANK = os.environ.get("HOROVOD_RANK", "0")
os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.mkdtemp(prefix=f"hvd-rank{_RANK}-")
atexit.register(shutil.rmtree, os.environ["PYTEST_DEBUG_TEMPROOT"], ignore_errors=True)

import tensorflow as tf

import horovod.tensorflow as hvd
from horovod._core import _native
from horovod.common.exceptions import HorovodInternalError

TEST_LIMIT_SECONDS = 180

# Ranks times threads must not exceed the cores.
tf.config.threading.set_intra_op_parallelism_threads(1)


@pytest.fixture(autouse=True)
def _skip_alone(request: pytest.FixtureRequest, _ranks_meet: None) -> None:
    if request.node.get_closest_marker("disagreement") and hvd.size() < 2:
        pytest.skip("one rank agrees with itself")


@pytest.fixture(autouse=True)
def _ranks_meet() -> Iterator[None]:
    """Begin and end each test together; a test that hangs ends the process with its stacks."""
    faulthandler.dump_traceback_later(TEST_LIMIT_SECONDS, exit=True)
    hvd.init()
    yield
    try:
        _native.barrier(0, None)
    except (HorovodInternalError, ValueError):
        # Some rank failed: all of them get here, and start anew.
        hvd.shutdown()
        hvd.init()
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def rank() -> int:
    """Rank of this process."""
    return hvd.rank()


@pytest.fixture
def size() -> int:
    """Size of the job."""
    return hvd.size()


@pytest.fixture
def process_set() -> Iterator[hvd.ProcessSet]:
    """Every second rank, as a set; members alone use it."""
    ranks = list(range(0, hvd.size(), 2))
    if len(ranks) == hvd.size():
        yield hvd.global_process_set
        return
    added = hvd.add_process_set(ranks)
    yield added
    hvd.remove_process_set(added)
