"""Elastic training: state, and the loop around a training function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from horovod._core.elastic import news
from horovod._core.elastic.state import ObjectState, State
from horovod._core.elastic.world import World, leave
from horovod.runner.elastic.worker import WorkerNotificationManager

from .exceptions import HorovodInternalError, HostsUpdatedInterrupt

__all__ = ["ObjectState", "State", "notification_manager", "run_fn"]

notification_manager = WorkerNotificationManager()


def run_fn(func: Callable[..., Any], reset: Callable[[], Any]) -> Callable[..., Any]:
    """Wrap a training function, whose first argument is its state.

    The function is called again after each reset. A lost peer costs what was done since the last
    commit; hosts that came or went as planned cost nothing.
    """

    @functools.wraps(func)
    def wrapper(state: Any, *args: Any, **kwargs: Any) -> Any:
        notification_manager.init()
        notification_manager.register_listener(state)
        if isinstance(reset, World):
            reset.begin()
        try:
            return _run_until_done(lambda: func(state, *args, **kwargs), reset, state)
        finally:
            notification_manager.remove_listener(state)

    return wrapper


def _run_until_done(train: Callable[[], Any], reset: Callable[[], Any], state: Any) -> Any:
    skip_sync = False
    is_reset = False
    while True:
        try:
            if is_reset:
                state.on_reset()
            _sync(state, skip_sync)
            # The launcher must know who has the state: without any of these there is nothing to go on from.
            news.report(news.REPORT_COMMITTED, state.count_commits() if isinstance(state, State) else 1)
            result = train()
        except HorovodInternalError:
            state.restore()
            skip_sync = False
        except HostsUpdatedInterrupt as interrupt:
            skip_sync = interrupt.skip_sync
            if news.look().is_asked_to_leave:
                leave()
        else:
            news.report(news.REPORT_DONE)
            return result
        reset()
        is_reset = True


def _sync(state: Any, skip_sync: bool) -> None:
    if not skip_sync:
        state.sync()
    elif news.is_active():
        # Somebody may have come meanwhile, who will call sync: then all must.
        state.sync_if_needed() if isinstance(state, State) else state.sync()
