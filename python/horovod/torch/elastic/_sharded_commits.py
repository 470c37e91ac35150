"""Commits of a sharded optimizer: every rank keeps its own shards and a copy of another rank's.

So the loss of a rank, or of a host where there are several, loses nothing. The copies are exchanged
before anybody counts the commit as made, and the one before is kept until then: whichever commit the
ranks agree on after a loss, its shards exist. The copies of a host lie on others; where it has more ranks
than all others together, each of these keeps several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import torch

from horovod._core import _native
from horovod._core.integers import allgather_integers
from horovod._core.process_sets import ProcessSet, registered_id
from horovod.torch.functions import allgather_object, broadcast_object
from horovod.torch.mpi_ops import alltoall, broadcast_
from horovod.torch.sharded_optimizer import ShardedOptimizer

CommitName = tuple[int, int]

_KEPT = 2
"""The newest commit, and the one before: ranks may disagree about whether the newest was made."""


@dataclass
class Shards:
    """The state of one rank's shards: elementwise tensors in one buffer of bytes, and the rest."""

    data: torch.Tensor
    layout: list[tuple[int, str, torch.dtype, int]]
    """Bucket, key, dtype and number of elements of each tensor in the buffer."""
    others: list[dict[str, Any]]
    """By bucket: what is the same for every element, such as the number of steps."""
    options: list[dict[str, Any]]
    """By parameter group: learning rate and others."""

    def tensors(self) -> Iterator[tuple[int, str, torch.Tensor]]:
        """Bucket, key and values, as views of the buffer."""
        start = 0
        for bucket, key, dtype, count in self.layout:
            size = count * torch.empty((), dtype=dtype).element_size()
            yield bucket, key, self.data[start : start + size].view(dtype)
            start += -(-size // _ALIGNMENT) * _ALIGNMENT


_ALIGNMENT = 16


@dataclass
class Version:
    """What one rank keeps of one commit."""

    name: CommitName
    rank: int
    size: int
    mine: Shards
    theirs: dict[int, Shards]
    """By rank."""


def partner_of(rank: int, hosts: Sequence[int]) -> int:
    """The rank that keeps a copy of this rank's shards: on another host where there is one.

    Each rank keeps as few copies as that allows: one, unless a host has most of the ranks.

    Arguments:
        rank: whose shards.
        hosts: a number by rank that is the same on one host.

    """
    by_host = sorted(range(len(hosts)), key=lambda one: (hosts[one], one))
    place = by_host.index(rank)
    members = Counter(hosts)
    largest, longest = max(members.items(), key=itemgetter(1))
    if len(members) == 1:
        return by_host[(place + 1) % len(by_host)]
    if longest * 2 <= len(hosts):
        # The same place on the next host is the longest host away.
        return by_host[(place + longest) % len(by_host)]
    inside = [one for one in by_host if hosts[one] == largest]
    outside = [one for one in by_host if hosts[one] != largest]
    mine, others = (inside, outside) if rank in inside else (outside, inside)
    return others[mine.index(rank) % len(others)]


@torch.no_grad()
def take_shards(optimizer: ShardedOptimizer, memory: torch.Tensor | None) -> Shards:
    """Copy this rank's shards, into `memory` where that has the right size."""
    layout, sources, others = [], [], []
    for index, (bucket, state) in enumerate(optimizer.shard_states()):
        rest = {}
        for key, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == bucket.shard.shape and value.dim() > 0:
                layout.append((index, key, value.dtype, value.numel()))
                sources.append(value)
            else:
                rest[key] = value.clone() if isinstance(value, torch.Tensor) else value
        others.append(rest)
    sizes = [-(-s.numel() * s.element_size() // _ALIGNMENT) * _ALIGNMENT for s in sources]
    total = sum(sizes)
    if memory is None or memory.numel() != total:
        memory = torch.zeros(total, dtype=torch.uint8)
    shards = Shards(memory, layout, others, optimizer.group_options())
    for (_, _, target), source in zip(shards.tensors(), sources, strict=True):
        target.copy_(source.detach())
    return shards


class ShardedCommits:
    """The newest commits of one rank."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._versions: list[Version] = []
        self._spare: list[torch.Tensor] = []

    def save(self, optimizer: ShardedOptimizer, name: CommitName | None) -> None:
        """Make a commit; returns when every rank has its copies. A collective of the optimizer's ranks."""
        if name is None:
            return
        process_set = optimizer.process_set
        memory = self._spare.pop() if self._spare else None
        mine = take_shards(optimizer, memory)
        number = registered_id(process_set)
        rank, size = _native.process_set_rank(number), _native.process_set_size(number)
        theirs = _exchange(mine, rank, size, process_set)
        # A sync that lost a peer at its end counts nowhere, and is repeated under the same name with
        # other ranks: its shards are cut differently.
        self._versions = [version for version in self._versions if version.name != name]
        self._versions.append(Version(name, rank, size, mine, theirs))
        # If this is passed by one rank, all ranks have come, with their copies.
        allgather_integers([name[1]], process_set, "elastic.shards.done")
        while len(self._versions) > _KEPT:
            self._spare = [self._versions.pop(0).mine.data]

    def restore(self, optimizer: ShardedOptimizer) -> None:
        """Bring this rank's shards back, if the parameters are still cut as they were."""
        if self._versions:
            newest = self._versions[-1]
            if (newest.rank, newest.size) == optimizer.place:
                _fill(optimizer, newest.mine, newest.rank, newest.size)

    def collect(self, optimizer: ShardedOptimizer, name: CommitName | None, root: int) -> None:
        """Cut the state of a commit for this world, from all who have parts of it. A collective."""
        kept = next((version for version in self._versions if version.name == name), None)
        process_set = optimizer.process_set
        old_size = broadcast_object(None if kept is None else kept.size, root, "elastic.shards.size")
        # Who missed a sync that was repeated may have its shards as they were cut for another size.
        is_cut_so = kept is not None and kept.size == old_size
        held = {kept.rank: kept.mine, **kept.theirs} if kept is not None and is_cut_so else {}
        everybody = allgather_object(sorted(held), name="elastic.shards.held", process_set=process_set)
        if name is None or old_size is None:
            return  # the first sync: each rank has made its own part
        optimizer.clear_shard_states()
        ranks = process_set.ranks or []
        for old_rank in range(old_size):
            owners = [ranks[place] for place, mine in enumerate(everybody) if old_rank in mine]
            if not owners:
                raise RuntimeError(_lost(old_rank, old_size, name))
            shards = _share(held.get(old_rank), owners[0], process_set)
            _fill(optimizer, shards, old_rank, old_size)


def _lost(old_rank: int, old_size: int, name: CommitName) -> str:
    return (
        f"ShardedOptimizer: the state that rank {old_rank} of {old_size} had at commit {name[1]} is lost: "
        "that rank and the one that kept its copy have both gone; go on from a checkpoint"
    )


def _exchange(mine: Shards, rank: int, size: int, process_set: ProcessSet) -> dict[int, Shards]:
    """Send my shards to my partner; returns what others gave me to keep."""
    if size == 1:
        return {}
    # Ranks stand host by host: the first one of a host names it.
    host = _native.rank() - _native.local_rank()
    gathered = allgather_integers([host, mine.data.numel()], process_set, "elastic.shards.sizes")
    hosts = [numbers[0] for numbers in gathered]
    splits = torch.zeros(size, dtype=torch.int32)
    splits[partner_of(rank, hosts)] = mine.data.numel() // _ALIGNMENT
    rows = mine.data.reshape(mine.data.numel() // _ALIGNMENT, _ALIGNMENT)
    received, _ = alltoall(rows, splits, name="elastic.shards", process_set=process_set)
    senders = [sender for sender in range(size) if partner_of(sender, hosts) == rank]
    parts = received.reshape(-1).split([gathered[sender][1] for sender in senders])
    # What is not elementwise, and the layout of equal shards, are the same on every rank.
    return {
        sender: Shards(data, mine.layout, mine.others, mine.options)
        for sender, data in zip(senders, parts, strict=True)
    }


def _share(mine: Shards | None, owner: int, process_set: ProcessSet) -> Shards:
    """Give every rank the shards that the owner has."""
    described = None if mine is None else (mine.layout, mine.others, mine.options, mine.data.numel())
    layout, others, options, count = broadcast_object(described, owner, "elastic.shards.form", process_set)
    data = mine.data if mine is not None else torch.empty(count, dtype=torch.uint8)
    if count:
        broadcast_(data, owner, name="elastic.shards.data", process_set=process_set)
    return Shards(data, layout, others, options)


@torch.no_grad()
def _fill(optimizer: ShardedOptimizer, shards: Shards, old_rank: int, old_size: int) -> None:
    """Copy what this rank owns now of the shards that a rank owned then."""
    states = optimizer.shard_states()
    for (_, state), others in zip(states, shards.others, strict=True):
        for key, value in others.items():
            state[key] = value.clone() if isinstance(value, torch.Tensor) else value
    for index, key, values in shards.tensors():
        bucket, state = states[index]
        if key not in state:
            state[key] = torch.zeros(bucket.shard_count, dtype=values.dtype, device=bucket.shard.device)
        old_count = -(-bucket.count // old_size)
        begin, end = old_rank * old_count, (old_rank + 1) * old_count
        first = max(begin, bucket.begin)
        last = min(end, bucket.begin + bucket.shard_count)
        if first < last:
            target = state[key].narrow(0, first - bucket.begin, last - first)
            target.copy_(values.narrow(0, first - begin, last - first))
    optimizer.take_group_options(shards.options)
