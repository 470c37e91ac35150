"""What a collective gives back to torch: something to wait for, to ask, or to chain on.

A work owns the inputs and temporaries of its operation (the core keeps `owner` until completion, the
closure `finish` keeps what has to be copied back). Any thread may wait; the first one that finds the
operation complete settles it, the others see the result.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch.distributed import DistBackendError, Work

from horovod._core import _native

from ._kept import keep, let_go
from ._origin import new_future

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._origin import Origin

    Finish = Callable[[int], None]
    TensorList = list[torch.Tensor]
    WorkFuture = torch.futures.Future[list[torch.Tensor]]

_NO_TIMEOUT_GIVEN = timedelta(0)


def late(seconds: float) -> str:
    """The text of a time limit that passed."""
    return (
        f"the collective did not complete within {seconds:g} s: not every rank of the group has "
        "called it, or a rank is late; it goes on in the background"
    )


class CompletedWork(Work):
    """A collective that was complete when it returned."""

    def __init__(self, outputs: TensorList) -> None:
        super().__init__()
        self._outputs = outputs
        keep(self)

    def wait(self, timeout: timedelta = _NO_TIMEOUT_GIVEN) -> bool:  # noqa: ARG002
        let_go(self)
        return True

    def synchronize(self) -> None:
        """Nothing is left to do."""

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> TensorList:
        return self._outputs

    def get_future(self) -> WorkFuture:
        future = new_future(self._outputs)
        future.set_result(self._outputs)
        return future


class PendingWork(Work):
    """A collective under way."""

    def __init__(
        self,
        handle: int,
        outputs: TensorList,
        seconds: float,
        finish: Finish | None,
        start_future: Callable[[PendingWork], None],
        origin: Origin | None,
    ) -> None:
        super().__init__()
        self._handle = handle
        self._outputs = outputs
        self._seconds = seconds
        self._finish = finish
        self._start_future = start_future
        self._origin = origin
        self._error: Exception | None = None
        self._done = False
        self._future: WorkFuture | None = None
        self._waiting = threading.Lock()  # held by the thread that waits in the core
        self._state = threading.Lock()  # guards _done and _future against each other
        keep(self)

    # ---- what torch calls

    def wait(self, timeout: timedelta = _NO_TIMEOUT_GIVEN) -> bool:
        if not self._done:
            seconds = timeout.total_seconds() if timeout > _NO_TIMEOUT_GIVEN else self._seconds
            if not self.settle_within(seconds):
                raise DistBackendError(late(seconds))
        let_go(self)
        if self._error is not None:
            raise self._error
        if self._origin is not None:
            self._origin.hold_back_current()
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._done or self.settle_within(0.0)

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> TensorList:
        return self._outputs

    def get_future(self) -> WorkFuture:
        with self._state:
            if self._future is not None:
                return self._future
            future = new_future(self._outputs)
            self._future = future
            done = self._done
        if done:
            self._complete(future)
        else:
            self._start_future(self)
        return future

    # ---- completion

    def expire(self) -> None:
        """Ends the work with an error: its time is over. The operation itself goes on."""
        with self._waiting:
            if self._done:
                return
            self._finish = None
            _native.release(self._handle)
            self._end(DistBackendError(late(self._seconds)))

    @property
    def seconds(self) -> float:
        """The time limit."""
        return self._seconds

    def _end(self, error: Exception) -> None:
        with self._state:
            self._error = error
            self._done = True
            future = self._future
        if future is not None:
            self._complete(future)

    def settle_within(self, seconds: float) -> bool:
        """Whether the work is done now. Never raises the operation's own error: that is kept."""
        if not self._waiting.acquire(timeout=seconds):
            return self._done
        future = None
        try:
            if not self._done:
                if not self._wait_in_core(seconds):
                    return False
                with self._state:
                    self._done = True
                    future = self._future
        finally:
            self._waiting.release()
        # Without the lock: callbacks of the future may wait for this very work.
        if future is not None:
            self._complete(future)
        return True

    def _wait_in_core(self, seconds: float) -> bool:
        if seconds == 0.0 and not _native.poll(self._handle):
            return False
        try:
            if not _native.wait(self._handle, seconds):
                return False
            self._finish_in_origin(self._handle)
        except Exception as error:  # noqa: BLE001 - kept for every thread that asks
            self._error = error
        self._finish = None
        _native.release(self._handle)
        return True

    def _finish_in_origin(self, handle: int) -> None:
        """The core has ordered the results in the stream that the operation was submitted from."""
        if self._origin is None:
            if self._finish is not None:
                self._finish(handle)
            return
        with self._origin.entered():
            if self._finish is not None:
                self._finish(handle)
            self._origin.mark()

    def _complete(self, future: WorkFuture) -> None:
        if self._error is None:
            with nullcontext() if self._origin is None else self._origin.entered():
                future.set_result(self._outputs)
        else:
            future.set_exception(self._error)  # type: ignore[arg-type] # a wrong stub


class JointWork(Work):
    """Several works that torch sees as one."""

    def __init__(self, works: list[Work]) -> None:
        super().__init__()
        self._works = works
        keep(self)

    def wait(self, timeout: timedelta = _NO_TIMEOUT_GIVEN) -> bool:
        let_go(self)
        for work in self._works:
            work.wait(timeout)
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> Exception | None:
        return next((e for e in (w.exception() for w in self._works) if e is not None), None)

    def result(self) -> TensorList:
        return [tensor for work in self._works for tensor in work.result()]

    def get_future(self) -> WorkFuture:
        # torch would join futures into one that knows no devices, whose waiters are ordered after nothing.
        future = new_future(self.result())

        def complete(_: object) -> None:
            try:
                self.wait()  # all are there: this orders the current streams, and raises what went wrong
            except Exception as error:  # noqa: BLE001 - told to whoever asks the future
                future.set_exception(error)  # type: ignore[arg-type] # a wrong stub
            else:
                future.set_result(self.result())

        torch.futures.collect_all([work.get_future() for work in self._works]).add_done_callback(complete)
        return future
