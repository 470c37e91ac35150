"""The loaders that programs build over readers of their own."""

from __future__ import annotations

import numpy as np
import pytest

from horovod.spark.data_loaders.pytorch_data_loaders import (
    PytorchAsyncDataLoader,
    PytorchDataLoader,
    PytorchInfiniteAsyncDataLoader,
    PytorchInfiniteDataLoader,
    PytorchInmemAsyncDataLoader,
    PytorchInmemDataLoader,
)


class Reader:
    def __init__(self, num_epochs=1):
        self.num_epochs = num_epochs

    def __iter__(self):
        for _ in range(self.num_epochs or 1000):
            yield {"x": np.arange(6)}
            yield {"x": np.arange(6, 10)}


def _values(loader):
    return [batch["x"].tolist() for batch in loader]


@pytest.mark.parametrize("kind", [PytorchDataLoader, PytorchAsyncDataLoader])
def test_a_pass_has_all_rows_in_batches(kind):
    loader = kind(reader=Reader(), batch_size=4)

    assert _values(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_limit_ends_a_pass():
    assert _values(PytorchDataLoader(Reader(), 4, limit_step_per_epoch=2)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_shuffling_keeps_the_rows():
    found = _values(PytorchDataLoader(Reader(), 10, shuffling_queue_capacity=10))[0]

    assert sorted(found) == list(range(10))


@pytest.mark.parametrize("kind", [PytorchInfiniteDataLoader, PytorchInfiniteAsyncDataLoader])
def test_an_infinite_loader_goes_on_where_it_ended(kind):
    loader = kind(reader=Reader(None), batch_size=4, limit_step_per_epoch=2)

    assert _values(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert _values(loader)[0] == [8, 9, 0, 1]
    if kind is PytorchInfiniteAsyncDataLoader:
        loader.close_async_loader()


def test_an_infinite_loader_needs_a_reader_without_end():
    with pytest.raises(ValueError, match="num_epochs=1"):
        PytorchInfiniteDataLoader(Reader(), 4)


@pytest.mark.parametrize("kind", [PytorchInmemDataLoader, PytorchInmemAsyncDataLoader])
def test_a_loader_from_memory_repeats_its_rows(kind):
    loader = kind(reader=Reader(), batch_size=4, limit_step_per_epoch=3)

    assert _values(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
    if kind is PytorchInmemAsyncDataLoader:
        loader.close_async_loader()


def test_a_loader_from_memory_needs_a_limit():
    with pytest.raises(ValueError, match="limit_step_per_epoch must not be -1"):
        PytorchInmemDataLoader(Reader(), 4)
