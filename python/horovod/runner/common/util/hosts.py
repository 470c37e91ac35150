"""Hosts of a job, and the places of the ranks on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from horovod.runner._program import plan

_ITEM = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.%\w-]+\]):(?P<slots>[0-9]+)")
_LINE = re.compile(
    r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.%\w-]+\])(:(?P<mpich>[0-9]+)|\s+slots=(?P<slots>[0-9]+)(\s.*)?)?"
)


@dataclass(frozen=True)
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

    The launcher decides, so names of this machine count as one host.
    """
    slots = sum(host.slots for host in hosts)
    if slots < min_num_proc:
        message = f"{min_num_proc} processes were requested, but the hosts have only {slots} slots"
        raise ValueError(message)
    size = slots if max_num_proc is None else min(slots, max_num_proc)
    text = ",".join(f"{host.hostname}:{host.slots}" for host in hosts)
    planned = plan([f"--num-proc={size}", f"--hosts={text}", "true"], environment={})
    return [_slot(rank, _given_names(planned, hosts)) for rank in planned["ranks"]]


def _given_names(planned: dict[str, Any], hosts: Sequence[HostInfo]) -> dict[str, str]:
    """The launcher's name of a host -> the caller's; they differ for 'localhost'."""
    pairs = list(zip(planned["hosts"], hosts, strict=False))
    if any(found["slots"] != given.slots for found, given in pairs):
        return {}  # several names were one host, which has the launcher's name
    return {found["name"]: given.hostname for found, given in pairs}


def _slot(rank: dict[str, Any], names: dict[str, str]) -> SlotInfo:
    return SlotInfo(
        hostname=names.get(rank["hostname"], rank["hostname"]),
        rank=rank["rank"],
        local_rank=rank["local_rank"],
        cross_rank=rank["cross_rank"],
        size=rank["size"],
        local_size=rank["local_size"],
        cross_size=rank["cross_size"],
    )
