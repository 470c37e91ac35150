"""The allocator setting: page faults of repeated large allocations disappear."""

from __future__ import annotations

import subprocess
import sys

import pytest

from horovod._core.allocator import tuning_requested

PROGRAM = """
import ctypes, resource, sys
from horovod._core.allocator import tune_allocator
if sys.argv[1] == "tuned":
    assert tune_allocator()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
SIZE = 40 << 20  # beyond the largest threshold that malloc adapts to by itself
def use():
    block = libc.malloc(SIZE)
    ctypes.memset(block, 1, SIZE)
    libc.free(block)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, mode], capture_output=True, text=True, check=True, timeout=60
    )
    return int(done.stdout)


def test_freed_memory_is_used_again_without_page_faults() -> None:
    assert faults("tuned") < 500
    assert faults("default") > 1000


def test_environment() -> None:
    assert not tuning_requested({})
    assert not tuning_requested({"HOROVOD_TUNE_ALLOCATOR": "0"})
    assert tuning_requested({"HOROVOD_TUNE_ALLOCATOR": "1"})
    with pytest.raises(ValueError, match=r"HOROVOD_TUNE_ALLOCATOR.*'yes'"):
        tuning_requested({"HOROVOD_TUNE_ALLOCATOR": "yes"})
