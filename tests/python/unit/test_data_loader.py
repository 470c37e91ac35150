"""Data loaders: synchronous, asynchronous, failing, closed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from horovod.data import AsyncDataLoaderMixin, BaseDataLoader


class Loader(BaseDataLoader):
    def __init__(self, count: int, fail_at: int | None = None) -> None:
        self.count = count
        self.fail_at = fail_at
        self.threads: set[threading.Thread] = set()

    def __len__(self) -> int:
        return self.count

    def _iterate(self) -> Iterator[int]:
        self.threads.add(threading.current_thread())
        for index in range(self.count):
            if index == self.fail_at:
                raise OSError(index, "unreadable batch")
            yield index

    def _process_batch(self, batch: Any) -> Any:
        return batch * 10


class AsyncLoader(AsyncDataLoaderMixin, Loader):
    """Reads ahead."""


def test_base_loader_processes_each_batch() -> None:
    assert list(Loader(3)) == [0, 10, 20]
    assert len(Loader(3)) == 3


def test_base_loader_is_abstract() -> None:
    with pytest.raises(TypeError):
        BaseDataLoader()  # type: ignore[abstract]


@pytest.mark.parametrize("queue_size", [1, 2, 64])
def test_reads_every_pass_in_a_thread_of_its_own(queue_size: int) -> None:
    loader = AsyncLoader(count=5, async_loader_queue_size=queue_size)

    passes = [list(loader) for _ in range(3)]
    loader.close_async_loader()

    assert passes == [[0, 10, 20, 30, 40]] * 3
    assert threading.current_thread() not in loader.threads
    assert not any(thread.is_alive() for thread in loader.threads)


def test_size_zero_reads_in_the_calling_thread() -> None:
    loader = AsyncLoader(0, False, 4)

    assert list(loader) == [0, 10, 20, 30]
    assert loader.threads == {threading.current_thread()}
    loader.close_async_loader()


def test_failure_of_the_source_is_raised_where_batches_are_read() -> None:
    loader = AsyncLoader(count=5, fail_at=2)
    seen: list[int] = []

    with pytest.raises(OSError, match="unreadable"):
        seen.extend(loader)

    assert seen == [0, 10]
    assert list(loader) == []
    with pytest.raises(RuntimeError, match="has ended"):
        list(loader)


def test_closing_in_the_middle_ends_the_thread() -> None:
    loader = AsyncLoader(count=10**9, async_loader_queue_size=2)
    batches = iter(loader)
    assert next(batches) == 0

    loader.close_async_loader()

    assert not any(thread.is_alive() for thread in loader.threads)


def test_closing_before_the_first_pass_does_nothing() -> None:
    AsyncLoader(count=3).close_async_loader()
