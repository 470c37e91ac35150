"""Where the copies of a sharded optimizer's state lie, and what a repeated commit leaves."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from horovod.torch.elastic import _sharded_commits
from horovod.torch.elastic._sharded_commits import ShardedCommits, Shards, partner_of


def hosts_of(*sizes: int) -> list[int]:
    """As ranks stand in elastic jobs: host by host, each named by its first rank."""
    return [sum(sizes[:host]) for host, size in enumerate(sizes) for _ in range(size)]


@pytest.mark.parametrize(
    ("sizes", "most_kept"),
    [
        ((1,), 1),
        ((4,), 1),
        ((1, 1), 1),
        ((2, 2), 1),
        ((2, 1), 2),
        ((1, 2), 2),
        ((3, 1), 3),
        ((4, 3), 2),
        ((1, 4, 1), 2),
        ((2, 1, 1), 1),
        ((3, 2, 2), 1),
        ((1, 5, 1, 2), 2),
        ((8, 8, 7), 1),
    ],
)
def test_the_loss_of_a_host_loses_no_shard_and_nobody_keeps_more_than_need_be(sizes, most_kept):
    hosts = hosts_of(*sizes)

    partners = [partner_of(rank, hosts) for rank in range(len(hosts))]

    for rank, partner in enumerate(partners):
        assert hosts[rank] != hosts[partner] or len(sizes) == 1
        assert rank != partner or len(hosts) == 1
    assert max(Counter(partners).values()) == most_kept


def test_ranks_of_a_host_need_not_stand_together():
    hosts = [0, 1, 0, 1]

    assert all(hosts[partner_of(rank, hosts)] != hosts[rank] for rank in range(4))


class _OneRank:
    """Of a world of so many ranks, as far as commits ask."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
        self.process_set = SimpleNamespace(ranks=list(range(size)))
        self.filled: list[tuple[float, int]] = []
        shards = Shards(torch.full((16,), size, dtype=torch.uint8), [], [], [])
        native = SimpleNamespace(process_set_rank=lambda _: 0, process_set_size=lambda _: size)
        monkeypatch.setattr(_sharded_commits, "_native", native)
        monkeypatch.setattr(_sharded_commits, "registered_id", lambda _: 0)
        monkeypatch.setattr(_sharded_commits, "take_shards", lambda *_: shards)
        monkeypatch.setattr(_sharded_commits, "_exchange", lambda *_: dict.fromkeys(range(1, size), shards))

    def clear_shard_states(self) -> None:
        """Nothing is kept here."""


def _collect(monkeypatch: pytest.MonkeyPatch, commits: ShardedCommits, size: int) -> list[tuple[int, int]]:
    """Return which old ranks' shards a rank takes, and for which size they were cut."""
    optimizer: Any = _OneRank(monkeypatch, 1)
    taken = []
    monkeypatch.setattr(_sharded_commits, "allgather_object", lambda mine, **_: [mine])
    monkeypatch.setattr(_sharded_commits, "broadcast_object", lambda _, *__: size)
    monkeypatch.setattr(_sharded_commits, "_share", lambda shards, *_: shards)
    monkeypatch.setattr(
        _sharded_commits, "_fill", lambda _, shards, rank, __: taken.append((rank, int(shards.data[0])))
    )
    commits.collect(optimizer, (2, 5), 0)
    return taken


def test_a_sync_that_failed_at_its_end_leaves_nothing_to_its_repetition(monkeypatch):
    commits = ShardedCommits()

    def lose_a_peer(*_: Any) -> None:
        raise ConnectionError

    first: Any = _OneRank(monkeypatch, 3)
    monkeypatch.setattr(_sharded_commits, "allgather_integers", lose_a_peer)
    with pytest.raises(ConnectionError):
        commits.save(first, (2, 5))
    second: Any = _OneRank(monkeypatch, 2)
    monkeypatch.setattr(_sharded_commits, "allgather_integers", lambda *_: [])
    commits.save(second, (2, 5))

    assert _collect(monkeypatch, commits, 2) == [(0, 2), (1, 2)]


def test_shards_that_were_cut_for_another_size_are_as_good_as_lost(monkeypatch):
    commits = ShardedCommits()
    monkeypatch.setattr(_sharded_commits, "allgather_integers", lambda *_: [])
    commits.save(_OneRank(monkeypatch, 3), (2, 5))  # type: ignore[arg-type]

    with pytest.raises(RuntimeError, match="rank 0 of 2 had at commit 5 is lost"):
        _collect(monkeypatch, commits, 2)
