"""A data loader to derive from, and a mixin that reads ahead in a thread of its own."""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger("horovod.data")

# The producer looks this often whether it shall stop while the queue is full.
_STOP_CHECK_SECONDS = 0.1
# Draining gives up after this many items at least: a producer that never stops must not hold us.
_MINIMUM_DRAIN_COUNT = 200


class BaseDataLoader(ABC):
    """Derive from it, yield raw batches from `_iterate`, and change them in `_process_batch`."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of batches in one pass."""

    @abstractmethod
    def _iterate(self) -> Iterator[Any]:
        """Yield the batches of one pass."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the processed batches of one pass."""
        for batch in self._iterate():
            yield self._process_batch(batch)

    def _process_batch(self, batch: Any) -> Any:
        """Change a batch in the thread of the consumer; by default it stays as it is."""
        return batch


class AsyncDataLoaderMixin:
    """Reads ahead: a daemon thread runs `_iterate` again and again into a bounded queue.

    Stands left of the loader: `class AsyncLoader(AsyncDataLoaderMixin, MyLoader)`. A queue of size 0
    switches it off. The thread starts with the first iteration and lives until
    `close_async_loader`, so an endless or expensive source keeps its position between passes.
    """

    def __init__(
        self,
        async_loader_queue_size: int = 64,
        debug_data_loader: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Read at most `async_loader_queue_size` batches ahead; the rest goes to the loader."""
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        super().__init__(*args, **kwargs)
        self.started = False
        self.finished_event = threading.Event()
        self.queue: queue.Queue[Any] | None = None
        self.thread: threading.Thread | None = None
        if async_loader_queue_size > 0:
            self.queue = queue.Queue(async_loader_queue_size)
            self.thread = threading.Thread(target=self._async_worker, daemon=True)

    def __iter__(self) -> Iterator[Any]:
        """Yield the processed batches of one pass, which the thread has read already."""
        if self.queue is None or self.thread is None:
            yield from super().__iter__()  # type: ignore[misc]
            return
        if not self.started:
            self.started = True
            self.thread.start()
        while True:
            batch = self._next_item()
            if batch is None:
                return
            if isinstance(batch, Exception):
                raise batch
            yield self._process_batch(batch)  # type: ignore[attr-defined]

    def _next_item(self) -> Any:
        assert self.queue is not None  # noqa: S101 - the caller has looked
        assert self.thread is not None  # noqa: S101
        while True:
            try:
                return self.queue.get(timeout=_STOP_CHECK_SECONDS)
            except queue.Empty:
                # Its last item may have come between the time-out and this look.
                if self.thread.is_alive() or not self.queue.empty():
                    continue
                message = "the reading thread of this data loader has ended: it was closed or failed"
                raise RuntimeError(message) from None

    def close_async_loader(self) -> None:
        """Stop the thread and wait for it; what it has read ahead is dropped."""
        if self.queue is None or self.thread is None or not self.started:
            return
        self._debug("closing the asynchronous data loader")
        self.finished_event.set()
        limit = max(2 * self.async_loader_queue_size, _MINIMUM_DRAIN_COUNT)
        for _ in range(limit):
            try:
                self.queue.get_nowait()
            except queue.Empty:
                break
        self.thread.join()
        self._debug("the asynchronous data loader is closed")

    def _async_worker(self) -> None:
        try:
            while not self.finished_event.is_set():
                for batch in self._iterate():  # type: ignore[attr-defined]
                    if not self._put(batch):
                        return
                self._put(None)
        except Exception as error:  # noqa: BLE001 - raised again where the batches are read
            self._put(error)
            self._put(None)
        finally:
            self._debug("the reading thread ends")

    def _put(self, item: object) -> bool:
        """Hand over one item; False: the loader is being closed."""
        assert self.queue is not None  # noqa: S101 - the thread exists only with a queue
        while not self.finished_event.is_set():
            try:
                self.queue.put(item, timeout=_STOP_CHECK_SECONDS)
            except queue.Full:
                continue
            return True
        return False

    def _debug(self, text: str) -> None:
        if self.debug_data_loader:
            _log.info(text)
