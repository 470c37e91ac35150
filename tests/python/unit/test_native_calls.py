"""Submissions, errors and life cycle of the compiled module, in a job of one rank."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import native_calls
import pytest
import torch

from horovod._core import _native

INVALID_ARGUMENT, PRECONDITION = 4, 2
LIMIT_SECONDS = 30


class FailureError(Exception):
    """Takes the place of the front end's class."""

    status: int


@pytest.fixture(autouse=True)
def _job() -> Iterator[None]:
    native_calls.start()
    yield
    _native.shutdown()


def test_run_reduces_in_place():
    tensor = torch.arange(5.0)

    native_calls.run(tensor, "x")

    assert tensor.tolist() == [0, 1, 2, 3, 4]


def test_scaling_factors_reach_the_core():
    tensor = torch.ones(3)
    address = tensor.data_ptr()

    _native.run(
        kind=0, dtype=7, shape=[3], input=address, output=address, prescale=2.0, postscale=3.0, owner=tensor
    )

    assert tensor.tolist() == [6, 6, 6]


def test_submit_wait_release():
    tensor = torch.ones(3)

    handle = native_calls.submit(tensor, tensor)

    assert _native.wait(handle, None) is True
    assert _native.poll(handle) is True
    _native.release(handle)
    with pytest.raises(ValueError, match="unknown"):
        _native.wait(handle, None)


def test_the_first_poll_finds_an_operation_in_progress():
    tensor = torch.ones(3)
    handle = native_calls.submit(tensor, tensor)

    assert [_native.poll(handle), _native.poll(handle)] == [False, True]

    _native.release(handle)


def test_a_group_is_one_operation():
    tensors = [torch.full((n,), float(n)) for n in (1, 2, 3)]
    rows = [(7, t.shape, t.data_ptr(), t.data_ptr(), f"t{i}") for i, t in enumerate(tensors)]

    handle = _native.submit_group(kind=0, prescale=2.0, tensors=rows, owner=tensors)

    assert _native.wait(handle, LIMIT_SECONDS)
    assert [t.tolist() for t in tensors] == [[2], [4, 4], [6, 6, 6]]
    assert _native.output_shape(handle, 2) == (3,)
    _native.release(handle)


def test_wait_many_waits_for_all():
    tensors = [torch.ones(2) for _ in range(20)]
    handles = [native_calls.submit(t, t, f"n{i}") for i, t in enumerate(tensors)]

    assert _native.wait_many(handles, LIMIT_SECONDS) is True

    for handle in handles:
        _native.release(handle)


def test_a_prepared_operation_takes_other_buffers():
    prepared = _native.Prepared(kind=0, dtype=7, shape=(2,), postscale=2.0, name="p")
    first, second = torch.ones(2), torch.full((2,), 5.0)

    prepared.run(first.data_ptr(), first.data_ptr(), first)
    handle = prepared.submit(second.data_ptr(), second.data_ptr(), second)

    assert _native.wait(handle, LIMIT_SECONDS)
    _native.release(handle)
    assert [first.tolist(), second.tolist()] == [[2, 2], [10, 10]]


def test_a_prepared_operation_of_an_earlier_job_is_refused():
    prepared = _native.Prepared(kind=0, dtype=7, shape=(2,), name="p")
    tensor = torch.ones(2)
    _native.shutdown()
    native_calls.start()

    with pytest.raises(ValueError, match="prepare it again"):
        prepared.run(tensor.data_ptr(), tensor.data_ptr(), tensor)


def test_barrier_and_join_of_one_rank():
    assert _native.barrier(0, LIMIT_SECONDS) is None
    assert _native.join(LIMIT_SECONDS) == 0


def test_completions_come_to_the_thread_that_waits_for_them():
    tensors = [torch.ones(2) for _ in range(3)]
    taken: list[int | None] = []
    take = lambda: taken.extend(_native.next_completed(LIMIT_SECONDS) for _ in tensors)  # noqa: E731
    thread = threading.Thread(target=take)
    thread.start()

    handles = [native_calls.submit(t, t, f"n{i}", notify=True) for i, t in enumerate(tensors)]

    thread.join(LIMIT_SECONDS)
    assert sorted(taken) == sorted(handles)
    assert all(_native.wait(handle, 0) for handle in handles)
    for handle in handles:
        _native.release(handle)


def test_next_completed_returns_none_when_the_time_has_passed():
    assert _native.next_completed(0.01) is None


def test_shutdown_wakes_whoever_waits_for_a_completion():
    taken: list[int | None] = []
    thread = threading.Thread(target=lambda: taken.append(_native.next_completed(None)))
    thread.start()

    _native.shutdown()

    thread.join(LIMIT_SECONDS)
    assert taken == [None]
    assert _native.next_completed(None) is None


def test_process_sets_of_one_rank():
    assert _native.process_set_ids() == [0]
    assert _native.process_set_ranks(0) == [0]
    assert _native.process_set_size(0) == 1
    assert _native.process_set_included(0) == 1
    assert _native.process_set_rank(7) == -3
    with pytest.raises(ValueError, match="no such process set"):
        _native.process_set_ranks(7)


def test_a_set_that_members_open_among_themselves():
    members = _native.process_set_meet("alone", [0], LIMIT_SECONDS)

    _native.barrier(members, LIMIT_SECONDS)

    assert members not in _native.process_set_ids()
    _native.process_set_leave(members)
    with pytest.raises(ValueError, match="rank"):
        _native.process_set_meet("alone", [0, 7], LIMIT_SECONDS)


def test_counters_count():
    before = _native.stats()["operations"]

    native_calls.run(torch.ones(1))

    assert _native.stats()["operations"] == before + 1
    assert "allreduce" in _native.recent_operations().lower()


def test_a_bad_argument_is_a_value_error_with_its_status():
    with pytest.raises(ValueError, match="dtype 99 is not valid") as caught:
        _native.run(kind=0, dtype=99, shape=(1,), input=0, output=0, name="x", owner=None)

    assert caught.value.status == INVALID_ARGUMENT


RUN = {"kind": 0, "dtype": 7, "shape": (1,), "input": 0, "output": 0, "name": "x", "owner": None}


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"shape": 5}, TypeError),  # not a sequence
        ({"shape": ("a",)}, TypeError),
        ({"input": 1.5}, TypeError),
        ({"prescale": "1"}, TypeError),
        ({"name": b"x"}, TypeError),
        ({"name": "x\0y"}, ValueError),
        ({"kind": 1 << 40}, OverflowError),
        ({}, ValueError),  # no address
    ],
)
def test_wrong_arguments_raise(changed, error):
    with pytest.raises(error):
        _native.run(**(RUN | changed))


def test_keywords_are_found_in_any_order_and_by_their_text():
    tensor = torch.full((2,), 3.0)
    address = tensor.data_ptr()
    backwards = {
        "".join(list(name)): value  # not the object that the interpreter keeps for this name
        for name, value in {
            "owner": tensor,
            "postscale": 2.0,
            "output": address,
            "input": address,
            "shape": (2,),
            "dtype": 7,
            "kind": 0,
        }.items()
    }

    _native.run(**backwards)

    assert tensor.tolist() == [6, 6]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _native.run(0, 7), "run() takes keyword arguments only, got 2 positional"),
        (lambda: _native.run(**RUN, splits=None), "run() got an unexpected keyword argument 'splits'"),
        (lambda: _native.submit(kind=0), "submit() missing required keyword argument: 'dtype'"),
        (
            lambda: _native.submit_group(kind=0, owner=0),
            "submit_group() missing required keyword argument: 'tensors'",
        ),
        (lambda: _native.Prepared(0), "Prepared() takes keyword arguments only, got 1 positional"),
        (lambda: _native.Prepared(kind=0, nme="x"), "Prepared() got an unexpected keyword argument 'nme'"),
    ],
)
def test_wrong_keywords_are_named(call, message):
    with pytest.raises(TypeError) as caught:
        call()

    assert str(caught.value) == message


def test_a_call_without_a_job_raises_the_class_that_was_set():
    tensor = torch.ones(1)
    _native.shutdown()
    _native.set_error_class(FailureError)

    with pytest.raises(FailureError, match="not been initialized") as caught:
        native_calls.run(tensor)

    assert caught.value.status == PRECONDITION
    assert _native.rank() == -1
    with pytest.raises(TypeError, match="subclass of Exception"):
        _native.set_error_class(int)
    from horovod._core.errors import HorovodInternalError

    _native.set_error_class(HorovodInternalError)


def test_init_twice_and_shutdown_twice_change_nothing():
    native_calls.start()
    assert _native.is_initialized()

    _native.shutdown()
    _native.shutdown()

    assert not _native.is_initialized()


def test_init_refuses_an_impossible_topology():
    _native.shutdown()

    with pytest.raises(ValueError, match="rank"):
        _native.init((3, 2, 3, 2, 0, 1), None, [], False, 0)
    with pytest.raises(ValueError, match="6 numbers"):
        _native.init((0, 1), None, [], False, 0)
