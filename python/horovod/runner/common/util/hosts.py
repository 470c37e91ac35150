"""Hosts of a job, and the places of the ranks on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_ITEM = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.%\w-]+\]):(?P<slots>[0-9]+)")
_LINE = re.compile(
    r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.%\w-]+\])(:(?P<mpich>[0-9]+)|\s+slots=(?P<slots>[0-9]+)(\s.*)?)?"
)


@dataclass
class HostInfo:
    """A host, and how many ranks it takes."""

    hostname: str
    slots: int

    @staticmethod
    def from_string(host_string: str) -> HostInfo:
        """Read 'host:slots'."""
        found = _ITEM.fullmatch(host_string.strip())
        if found is None:
            message = f"expected host:slots, got {host_string!r}"
            raise ValueError(message)
        return HostInfo(found["host"], int(found["slots"]))


@dataclass
class SlotInfo:
    """The place of one rank."""

    hostname: str
    rank: int
    local_rank: int
    cross_rank: int
    size: int
    local_size: int
    cross_size: int

    def to_response_string(self) -> str:
        """Rank, size, local rank and size, cross rank and size, separated by commas."""
        places = (self.rank, self.size, self.local_rank, self.local_size, self.cross_rank, self.cross_size)
        return ",".join(str(place) for place in places)

    @staticmethod
    def from_response_string(response_string: str) -> SlotInfo:
        """The opposite of to_response_string; the host is not part of it."""
        rank, size, local_rank, local_size, cross_rank, cross_size = map(int, response_string.split(","))
        return SlotInfo("", rank, local_rank, cross_rank, size, local_size, cross_size)


INVALID_SLOT_INFO = SlotInfo("", -1, -1, -1, -1, -1, -1)


def parse_hosts(hosts_string: str) -> list[HostInfo]:
    """Read 'host1:2,host2:4'."""
    return [HostInfo.from_string(item) for item in hosts_string.split(",")]


def parse_hosts_and_slots(hosts: str) -> tuple[list[str], dict[str, int]]:
    """Names in order, and the slots of each; of a name that comes twice the last counts."""
    parsed = parse_hosts(hosts)
    return [host.hostname for host in parsed], {host.hostname: host.slots for host in parsed}


def parse_host_files(filename: str) -> str:
    """Read a host file ('host slots=2', 'host:2' or 'host' per line) as 'host1:2,host2:4'."""
    hosts = []
    for number, text in enumerate(Path(filename).read_text(encoding="utf-8").splitlines(), start=1):
        line = text.split("#")[0].strip()
        if not line:
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            message = f"{filename}: line {number}: expected 'host slots=N' or 'host:N', got {line!r}"
            raise ValueError(message)
        hosts.append(f"{found['host']}:{found['slots'] or found['mpich'] or 1}")
    return ",".join(hosts)


def get_host_assignments(
    hosts: Sequence[HostInfo], min_num_proc: int, max_num_proc: int | None = None
) -> list[SlotInfo]:
    """The place of every rank: all slots up to `max_num_proc`; ValueError with fewer than `min_num_proc`.

    Ranks fill host after host; a host is its name, which is not resolved. So this is the one place besides
    the launcher that knows the order of ranks: that tells hosts apart by what their names mean.
    """
    slots: Counter[str] = Counter()
    for host in hosts:
        slots[host.hostname] += host.slots
    places = [(name, local_rank) for name, count in slots.items() for local_rank in range(count)]
    places = places[:max_num_proc]
    if len(places) < min_num_proc:
        message = f"{min_num_proc} processes were requested, but the hosts have only {len(places)} slots"
        raise ValueError(message)
    local_sizes = Counter(name for name, _ in places)
    cross_sizes = Counter(local_rank for _, local_rank in places)
    cross_ranks: Counter[int] = Counter()
    found = []
    for rank, (name, local_rank) in enumerate(places):
        found.append(
            SlotInfo(
                hostname=name,
                rank=rank,
                local_rank=local_rank,
                cross_rank=cross_ranks[local_rank],
                size=len(places),
                local_size=local_sizes[name],
                cross_size=cross_sizes[local_rank],
            )
        )
        cross_ranks[local_rank] += 1
    return found
