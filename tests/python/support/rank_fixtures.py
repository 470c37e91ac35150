"""Fixtures for tests that every rank of a job runs; they keep the ranks together.

A test that fails on one rank leaves the others in a collective. The stall limit ends that wait with
an error on all ranks, and the next test begins with a new init. A conftest.py imports this before the
framework, whose settings may follow, and names the fixtures it wants.
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
os.environ.setdefault("HOROVOD_TIMELINE", "DYNAMIC")
os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "20")
os.environ.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", "60")

# pytest numbers and prunes the temporary folders of earlier runs; ranks that share a root would prune
# each other's.
_RANK = os.environ.get("HOROVOD_RANK", "0")
os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.mkdtemp(prefix=f"hvd-rank{_RANK}-")
atexit.register(shutil.rmtree, os.environ["PYTEST_DEBUG_TEMPROOT"], ignore_errors=True)

from horovod._core import _native
from horovod._core.basics import basics
from horovod._core.process_sets import (
    ProcessSet,
    add_process_set,
    global_process_set,
    remove_process_set,
)
from horovod.common.exceptions import HorovodInternalError

TEST_LIMIT_SECONDS = 180


@pytest.fixture(autouse=True)
def ranks_meet() -> Iterator[None]:
    """Begin and end each test together; a test that hangs ends the process with its stacks."""
    faulthandler.dump_traceback_later(TEST_LIMIT_SECONDS, exit=True)
    basics.init()
    yield
    try:
        _native.barrier(0, None)
    except (HorovodInternalError, ValueError):
        # Some rank failed: all of them get here, and start anew.
        basics.shutdown()
        basics.init()
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def skip_alone(request: pytest.FixtureRequest, ranks_meet: None) -> None:
    """Leave out what needs ranks that differ where there is one only."""
    if request.node.get_closest_marker("disagreement") and basics.size() < 2:
        pytest.skip("one rank agrees with itself")


@pytest.fixture
def rank() -> int:
    """Rank of this process."""
    return basics.rank()


@pytest.fixture
def size() -> int:
    """Size of the job."""
    return basics.size()


@pytest.fixture
def process_set() -> Iterator[ProcessSet]:
    """Every second rank, as a set; members alone use it."""
    ranks = list(range(0, basics.size(), 2))
    if len(ranks) == basics.size():
        yield global_process_set
        return
    added = add_process_set(ranks)
    yield added
    remove_process_set(added)
