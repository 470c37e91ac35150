"""ElasticIndices: the samples of an epoch for any framework, through resets."""

from __future__ import annotations

import math
import random

import pytest

import horovod.torch as hvd
from horovod._core.elastic.shares import ElasticIndices
from horovod.common.elastic import ObjectState
from horovod.common.exceptions import HorovodInternalError


@pytest.mark.parametrize("length", [0, 1, 10, 11])
@pytest.mark.parametrize("drop_remainder", [False, True])
def test_ranks_share_all_samples(length, drop_remainder, size):
    indices = ElasticIndices(length, drop_remainder=drop_remainder)

    shares = hvd.allgather_object(list(indices), name="shares")

    expected = math.floor(length / size) if drop_remainder else math.ceil(length / size)
    assert [len(share) for share in shares] == [expected] * size == [len(indices)] * size
    everything = [index for share in shares for index in share]
    if drop_remainder:
        assert len(set(everything)) == len(everything) == length - length % size
    else:
        assert set(everything) == set(range(length))


def test_every_sample_counts_once_over_failures(size):
    length, epochs = 8 * size, 3
    source = random.Random(5)
    state = ObjectState(
        bcast_object=hvd.broadcast_object, get_rank=hvd.rank, indices=ElasticIndices(length), seen=()
    )
    failures = []

    @hvd.elastic.run
    def train(state):
        while state.indices.epoch < epochs:
            for index in state.indices:
                everybody = hvd.allgather_object((state.indices.epoch, index))
                state.seen = (*state.seen, *everybody)
                state.indices.record_batch(1)
                if source.random() < 0.2:
                    failures.append(index)
                    raise HorovodInternalError
                if source.random() < 0.6:
                    state.commit()
            state.indices.set_epoch(state.indices.epoch + 1)
            state.commit()
        return state.seen

    seen = train(state)

    assert failures
    assert sorted(seen) == [(epoch, index) for epoch in range(epochs) for index in range(length)]
