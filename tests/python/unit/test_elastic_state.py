"""States with a broadcast of the program's own, and the loop around a training function."""

from __future__ import annotations

import queue
from unittest import mock

import pytest

from horovod._core.elastic import news
from horovod.common.elastic import ObjectState, State, notification_manager, run_fn
from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
from horovod.runner.elastic.worker import HostUpdateResult


def make_state(**kwargs):
    return ObjectState(bcast_object=lambda obj: obj, get_rank=lambda: 0, **kwargs)


def test_arguments_become_attributes_that_are_saved_and_restored():
    state = make_state(batch=1, epoch=2)
    state.batch = 10
    state.restore()
    assert (state.batch, state.epoch) == (1, 2)

    state.batch = 10
    state.commit()
    state.batch = 11
    state.restore()

    assert state.batch == 10


def test_sync_shares_what_was_saved_and_not_what_is_live():
    sent = []
    state = ObjectState(
        bcast_object=lambda obj: sent.append(obj) or {"batch": 5}, get_rank=lambda: 0, batch=1
    )
    state.batch = 99

    state.sync()

    assert sent == [{"batch": 1}]
    assert state.batch == 5


def test_a_state_without_names_sends_nothing():
    broadcast = mock.Mock()

    ObjectState(bcast_object=broadcast, get_rank=lambda: 0).sync()

    broadcast.assert_not_called()


def test_the_base_class_leaves_saving_to_others():
    state = State(bcast_object=lambda obj: obj, get_rank=lambda: 0)

    for call in (state.save, state.restore, state.sync):
        with pytest.raises(NotImplementedError):
            call()
    state.reset()


@pytest.mark.parametrize(
    ("results", "skips"),
    [
        ([HostUpdateResult.added], False),
        ([HostUpdateResult.removed], True),
        ([HostUpdateResult.removed, HostUpdateResult.removed], True),
        ([HostUpdateResult.removed, HostUpdateResult.added], False),
        ([HostUpdateResult.mixed], False),
    ],
)
def test_changes_of_hosts_interrupt_once(results, skips):
    state = State(bcast_object=lambda obj: obj, get_rank=lambda: 0)
    state.check_host_updates()
    for timestamp, result in enumerate(results, start=1):
        state.on_hosts_updated(timestamp, result)

    with pytest.raises(HostsUpdatedInterrupt) as raised:
        state.check_host_updates()

    assert raised.value.skip_sync is skips
    assert state._last_updated_timestamp == len(results)
    state.check_host_updates()


def test_old_news_do_not_interrupt():
    state = State(bcast_object=lambda obj: obj, get_rank=lambda: 0)
    state._last_updated_timestamp = 5
    state.on_hosts_updated(5, HostUpdateResult.added)

    state.check_host_updates()

    assert state._host_messages.empty()


def test_news_of_the_core_can_be_waited_for(monkeypatch):
    state = State(bcast_object=lambda obj: obj, get_rank=lambda: 0)
    assert state._host_messages.empty()

    monkeypatch.setattr(news, "look", lambda: news.News(7, HostUpdateResult.removed))

    assert not state._host_messages.empty()
    with pytest.raises(HostsUpdatedInterrupt) as raised:
        state.check_host_updates()
    assert raised.value.skip_sync
    assert state._host_messages.empty()
    state.check_host_updates()


def test_rank_zero_alone_decides():
    state = State(bcast_object=lambda obj: (0, 3, HostUpdateResult.added), get_rank=lambda: 1)

    with pytest.raises(HostsUpdatedInterrupt):
        state.check_host_updates()
    assert state._last_updated_timestamp == 3


def test_a_reset_forgets_messages_then_adapts_then_tells_the_program():
    calls = []

    class Adapting(State):
        def reset(self):
            calls.append("reset")

    state = Adapting(bcast_object=lambda obj: obj, get_rank=lambda: 0)
    state.register_reset_callbacks([lambda: calls.append("first"), lambda: calls.append("second")])
    state.on_hosts_updated(1, HostUpdateResult.added)

    state.on_reset()

    assert calls == ["reset", "first", "second"]
    assert isinstance(state._host_messages, queue.Queue)
    assert state._host_messages.empty()


# ---- run_fn


def raise_in_turn(*errors):
    """Return a training function that fails so often, and then returns its arguments."""
    waiting = list(errors)

    def train(state, *args, **kwargs):
        if waiting:
            raise waiting.pop(0)
        return args, kwargs

    return train


def test_the_function_is_called_with_a_state_that_is_in_sync():
    state, reset = mock.Mock(), mock.Mock()

    wrapped = run_fn(raise_in_turn(), reset)

    assert wrapped.__name__ == "train"
    assert wrapped(state, 1, two=2) == ((1,), {"two": 2})
    state.sync.assert_called_once_with()
    state.restore.assert_not_called()
    reset.assert_not_called()


def test_a_lost_peer_leads_back_to_the_last_commit():
    calls = mock.Mock()

    run_fn(raise_in_turn(HorovodInternalError()), calls.reset)(calls.state)

    names = [name for name, _, _ in calls.mock_calls]
    assert names == ["state.sync", "state.restore", "reset", "state.on_reset", "state.sync"]


@pytest.mark.parametrize("skip_sync", [False, True])
def test_changed_hosts_lose_nothing(skip_sync):
    calls = mock.Mock()

    run_fn(raise_in_turn(HostsUpdatedInterrupt(skip_sync)), calls.reset)(calls.state)

    names = [name for name, _, _ in calls.mock_calls]
    assert names == ["state.sync", "reset", "state.on_reset"] + ([] if skip_sync else ["state.sync"])


def test_a_sync_that_was_skipped_is_not_skipped_after_a_failure():
    calls = mock.Mock()
    train = raise_in_turn(HostsUpdatedInterrupt(skip_sync=True), HorovodInternalError())

    run_fn(train, calls.reset)(calls.state)

    assert calls.state.sync.call_count == 2
    assert calls.reset.call_count == 2


def test_a_peer_lost_while_the_state_is_shared_is_no_exception():
    state = mock.Mock()
    state.sync.side_effect = [HorovodInternalError(), None]

    run_fn(raise_in_turn(), mock.Mock())(state)

    state.restore.assert_called_once_with()


def test_other_errors_are_the_programs_own():
    state = mock.Mock()

    with pytest.raises(KeyError):
        run_fn(raise_in_turn(KeyError("mine")), mock.Mock())(state)

    assert state not in notification_manager._listeners


def test_the_state_listens_while_the_function_runs():
    state = make_state(batch=0)

    def train(state):
        notification_manager.handle_hosts_updated(1, HostUpdateResult.added)
        return state._host_messages.qsize()

    assert run_fn(train, mock.Mock())(state) == 1
    notification_manager.handle_hosts_updated(2, HostUpdateResult.added)
    assert state._host_messages.qsize() == 1
