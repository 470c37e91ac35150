"""ElasticSampler: shares of the ranks, and the rest of an epoch after a change."""

from __future__ import annotations

import math
import random

import pytest

import horovod.torch as hvd
from horovod.torch.elastic import ElasticSampler


@pytest.mark.parametrize("length", [0, 1, 10, 11])
@pytest.mark.parametrize("shuffle", [False, True])
def test_ranks_cover_the_dataset_once(length: int, shuffle: bool, size: int) -> None:
    sampler = ElasticSampler(range(length), shuffle=shuffle)

    shares = hvd.allgather_object(list(sampler), name="shares")

    assert len(sampler) == math.ceil(length / size)
    assert all(len(share) == len(sampler) for share in shares)
    assert {index for share in shares for index in share} == set(range(length))


def test_order_follows_seed_and_epoch(rank: int, size: int) -> None:
    indices = list(range(20))
    random.Random(3 + 2).shuffle(indices)

    sampler = ElasticSampler(range(20), seed=3)
    sampler.set_epoch(2)

    indices += indices[: sampler.total_size - 20]
    assert list(sampler) == indices[rank::size]


def test_goes_on_where_the_state_was_saved(size: int) -> None:
    sampler = ElasticSampler(range(40), seed=1)
    sampler.set_epoch(1)
    sampler.record_batch(0, 2)
    sampler.record_batch(1, 3)
    state = sampler.state_dict()
    assert state == {"epoch": 1, "processed_num": 5 * size}

    other = ElasticSampler(range(40), seed=1)
    other.load_state_dict(state)

    assert other.remaining_indices == sampler.remaining_indices[5 * size :]
    assert other.num_samples == math.ceil((40 - 5 * size) / size)
    sampler.set_epoch(2)
    assert sampler.processed_num == 0


def test_a_batch_is_a_part_of_the_share_and_older_states_are_read(size: int) -> None:
    sampler = ElasticSampler(range(40), seed=1)

    assert sampler.indices == list(sampler)
    assert sampler.get_indices(1, 3) == sampler.indices[3:6]
    assert sampler.get_indices(40, 3) == []

    sampler.load_state_dict({"epoch": 1, "processed_indices": set(range(2 * size))})
    assert (sampler.epoch, sampler.processed_num) == (1, 2 * size)
