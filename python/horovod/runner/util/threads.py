"""Threads that run one function."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

_logger = logging.getLogger("horovod")

# A signal that comes just before the main thread begins to wait, or to another thread, does not end the
# wait; its handler runs when the main thread looks again.
_LOOK_SECONDS = 1.0


def _check_arguments(args: Any) -> None:
    if not isinstance(args, tuple):
        message = f"args must be a tuple, not {type(args)}, for a single argument use (arg,)"
        raise ValueError(message)  # noqa: TRY004 - type of the public API


def in_thread(
    target: Callable[..., Any],
    args: Sequence[Any] = (),
    name: str | None = None,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Start a thread and return it. Silent: an exception of the target is only logged."""
    _check_arguments(args)

    def quietly(*call_args: Any) -> None:
        try:
            target(*call_args)
        except Exception:
            _logger.debug("exception in thread %s", name, exc_info=True)

    thread = threading.Thread(target=quietly if silent else target, args=args, name=name, daemon=daemon)
    thread.start()
    return thread


def on_event(
    event: threading.Event | None,
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    stop: threading.Event | None = None,
    check_stop_interval_s: float = 1.0,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Call the function in a thread as soon as the event is set, unless `stop` comes first.

    A thread that is no daemon keeps the process alive, so it needs `stop`.
    """
    if event is None:
        message = "Event must not be None"
        raise ValueError(message)
    _check_arguments(args)
    if stop is None and not daemon:
        message = "Stop event must be given for non-daemon event thread"
        raise ValueError(message)
    if stop is None:

        def wait_and_call() -> None:
            event.wait()
            func(*args)

    else:

        def wait_and_call() -> None:
            while not stop.is_set() and not event.wait(check_stop_interval_s):
                pass
            if not stop.is_set():
                func(*args)

    return in_thread(wait_and_call, daemon=daemon, silent=silent)


def execute_function_multithreaded(
    fn: Callable[..., Any],
    args_list: Sequence[Sequence[Any]],
    block_until_all_done: bool = True,
    max_concurrent_executions: int = 1000,
) -> dict[int, Any] | None:
    """Call the function with each list of arguments, many at a time, and return the results by index.

    An exception of a call is raised here. Without blocking nothing is returned.
    """
    if not args_list:
        return {}
    pool = ThreadPoolExecutor(min(max_concurrent_executions, len(args_list)))
    futures = [pool.submit(fn, *args) for args in args_list]
    pool.shutdown(wait=False)
    if not block_until_all_done:
        return None
    while wait(futures, timeout=_LOOK_SECONDS).not_done:
        pass
    return {index: future.result() for index, future in enumerate(futures)}
