"""What the compiled module keeps alive, and for how long."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import native_calls
import pytest
import torch

from horovod._core import _native

LIMIT_SECONDS = 30
TORCH_TYPES = [
    torch.uint8,
    torch.int8,
    torch.uint16,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    torch.bool,
    torch.bfloat16,
]


class Owner:
    """Something that can be watched."""


@pytest.fixture(autouse=True)
def _job() -> Iterator[None]:
    native_calls.start()
    yield
    _native.shutdown()


def test_the_owner_lives_until_its_handle_is_released():
    tensor, owner = torch.ones(4), Owner()
    watched = weakref.ref(owner)
    handle = native_calls.submit(tensor, owner)
    del owner
    gc.collect()

    _native.wait(handle, LIMIT_SECONDS)
    assert watched() is not None
    _native.release(handle)

    assert watched() is None


def test_the_owner_of_a_handle_released_too_early_goes_after_completion():
    tensor, owner = torch.ones(4), Owner()
    watched = weakref.ref(owner)
    handle = native_calls.submit(tensor, owner)
    del owner

    _native.release(handle)
    native_calls.run(torch.ones(1))  # later calls look after it
    native_calls.run(torch.ones(1))

    assert watched() is None


def test_run_keeps_no_reference():
    tensor = torch.ones(4)
    before = sys.getrefcount(tensor)

    for _ in range(10):
        native_calls.run(tensor, "x")

    assert sys.getrefcount(tensor) == before


def test_a_refused_submission_keeps_no_reference():
    owner = Owner()
    before = sys.getrefcount(owner)

    with pytest.raises(ValueError, match="dtype 99 is not valid"):
        native_calls.submit(torch.ones(1), owner, dtype=99)

    assert sys.getrefcount(owner) == before


def test_shutdown_lets_go_of_all_owners():
    owners = [Owner() for _ in range(3)]
    watched = [weakref.ref(owner) for owner in owners]
    tensors = [torch.ones(2) for _ in owners]
    handles = [native_calls.submit(tensors[i], owners[i], f"n{i}") for i in range(3)]
    del owners

    _native.shutdown()

    assert [ref() for ref in watched] == [None] * 3
    for handle in handles:
        _native.release(handle)  # the holder of a handle need not know of the shutdown


def test_a_destructor_may_call_the_module():
    tensor = torch.ones(2)
    other = native_calls.submit(tensor, None, "other")

    class Releases:
        def __del__(self) -> None:
            _native.release(other)

    handle = native_calls.submit(tensor, Releases(), "x")
    _native.wait_many([handle, other], LIMIT_SECONDS)

    _native.release(handle)

    with pytest.raises(ValueError, match="unknown"):
        _native.release(other)


@pytest.mark.parametrize("dtype", range(len(TORCH_TYPES)))
def test_an_allocated_output_becomes_a_tensor(dtype):
    tensor = torch.ones((3, 2), dtype=TORCH_TYPES[dtype])
    handle = native_calls.submit(tensor, tensor, "g", kind=native_calls.ALLGATHER, dtype=dtype, output=0)
    _native.wait(handle, LIMIT_SECONDS)

    gathered = torch.from_dlpack(_native.take_output(handle, 0))
    _native.release(handle)

    assert gathered.dtype == tensor.dtype
    assert torch.equal(gathered, tensor)
    assert gathered.is_contiguous()


def test_a_tensor_outlives_its_handle_and_the_job():
    tensor = torch.arange(6.0)
    handle = native_calls.submit(tensor, tensor, "g", kind=native_calls.ALLGATHER, output=0)
    _native.wait(handle, LIMIT_SECONDS)
    gathered = torch.from_dlpack(_native.take_output(handle, 0))

    _native.release(handle)
    _native.shutdown()

    assert gathered.tolist() == tensor.tolist()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_an_empty_output_becomes_an_empty_tensor(shape):
    tensor = torch.ones(shape)
    handle = native_calls.submit(tensor, tensor, "g", kind=native_calls.ALLGATHER, output=0)
    _native.wait(handle, LIMIT_SECONDS)

    gathered = torch.from_dlpack(_native.take_output(handle, 0))
    _native.release(handle)

    assert gathered.shape == shape


def test_an_output_is_given_away_once():
    tensor = torch.ones(4)
    handle = native_calls.submit(tensor, tensor, "g", kind=native_calls.ALLGATHER, output=0)
    _native.wait(handle, LIMIT_SECONDS)
    _native.take_output(handle, 0)

    with pytest.raises(ValueError, match="keeps no memory"):
        _native.take_output(handle, 0)
    with pytest.raises(ValueError, match="has 1 tensors"):
        _native.take_output(handle, 1)

    _native.release(handle)


def test_outputs_that_nobody_takes_do_not_add_up():
    tensor = torch.ones(1 << 20)

    def produce(count: int) -> int:
        for _ in range(count):
            handle = native_calls.submit(tensor, tensor, "g", kind=native_calls.ALLGATHER, output=0)
            _native.wait(handle, LIMIT_SECONDS)
            _native.take_output(handle, 0)  # the capsule is dropped at once
            _native.release(handle)
        return resident_bytes()

    before = produce(5)
    after = produce(50)

    assert after - before < 10 * tensor.nbytes


def test_a_shared_buffer_is_zeroed_and_known_to_the_core():
    buffer = torch.from_dlpack(_native.buffer_alloc((4, 8), native_calls.FLOAT32))

    assert buffer.shape == (4, 8)
    assert not buffer.any()
    assert _native.buffer_contains(buffer.data_ptr(), buffer.nbytes)
    assert not _native.buffer_contains(torch.ones(4).data_ptr(), 16)


def test_a_shared_buffer_is_freed_with_its_tensor():
    address = torch.from_dlpack(_native.buffer_alloc((1024,), native_calls.FLOAT32)).data_ptr()

    assert not _native.buffer_contains(address, 4096)


def test_a_shared_buffer_may_be_dropped_after_shutdown_and_in_the_next_job():
    first = torch.from_dlpack(_native.buffer_alloc((1024,), native_calls.FLOAT32))
    _native.shutdown()
    native_calls.start()
    second = torch.from_dlpack(_native.buffer_alloc((1024,), native_calls.FLOAT32))

    del first

    assert _native.buffer_contains(second.data_ptr(), second.nbytes)


def test_a_shared_buffer_can_be_read_after_shutdown():
    buffer = torch.from_dlpack(_native.buffer_alloc((1024,), native_calls.FLOAT32))
    buffer.fill_(3)

    _native.shutdown()

    assert buffer.sum() == 3 * 1024


@pytest.mark.parametrize("shape", [(-1,), (1 << 62, 1 << 62)])
def test_impossible_buffers_are_refused(shape):
    with pytest.raises(ValueError, match="shape"):
        _native.buffer_alloc(shape, native_calls.FLOAT32)


def resident_bytes() -> int:
    """Memory of this process."""
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * 4096
