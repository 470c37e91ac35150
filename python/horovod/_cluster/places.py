"""Where each worker of a cluster engine stands in the job. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


class RankOrder(Enum):
    """How workers become ranks."""

    AS_GIVEN = "worker i is rank i"
    BY_HOST = "host by host: sorted by identity, beginning with the host of worker 0"


@dataclass(frozen=True, slots=True)
class Place:
    """A rank, and its position within its host and across hosts."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int

    def variables(self) -> dict[str, str]:
        """The place as the core reads it from the environment."""
        return {
            "HOROVOD_RANK": str(self.rank),
            "HOROVOD_SIZE": str(self.size),
            "HOROVOD_LOCAL_RANK": str(self.local_rank),
            "HOROVOD_LOCAL_SIZE": str(self.local_size),
            "HOROVOD_CROSS_RANK": str(self.cross_rank),
            "HOROVOD_CROSS_SIZE": str(self.cross_size),
        }

    @property
    def is_one_host(self) -> bool:
        """Whether all ranks of the job are on this rank's host."""
        return self.local_size == self.size


def _first_seen(hosts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(hosts))


def _workers_by_rank(hosts: Sequence[str], order: RankOrder) -> list[int]:
    """The worker of each rank."""
    workers = list(range(len(hosts)))
    if order is RankOrder.AS_GIVEN:
        return workers
    names = sorted(set(hosts))
    first = names.index(hosts[0])
    turn = {host: at for at, host in enumerate(names[first:] + names[:first])}
    return sorted(workers, key=lambda worker: (turn[hosts[worker]], worker))


def assign_places(hosts: Sequence[str], order: RankOrder = RankOrder.AS_GIVEN) -> list[Place]:
    """The place of each worker, given the identity of each worker's host.

    Local ranks count the ranks of a host in order. Like the original, a cross rank counts the hosts
    that have a process with this local rank, in the order of their first ranks.
    """
    if not hosts:
        message = "a job needs at least one worker, got none"
        raise ValueError(message)
    by_rank = _workers_by_rank(hosts, order)
    local_size = Counter(hosts)
    local_rank: dict[int, int] = {}
    seen: Counter[str] = Counter()
    for worker in by_rank:
        local_rank[worker] = seen[hosts[worker]]
        seen[hosts[worker]] += 1
    ordered_hosts = _first_seen(hosts[worker] for worker in by_rank)
    places: dict[int, Place] = {}
    for rank, worker in enumerate(by_rank):
        host, local = hosts[worker], local_rank[worker]
        peers = [name for name in ordered_hosts if local_size[name] > local]
        places[worker] = Place(
            rank=rank,
            size=len(hosts),
            local_rank=local,
            local_size=local_size[host],
            cross_rank=peers.index(host),
            cross_size=len(peers),
        )
    return [places[worker] for worker in range(len(hosts))]
