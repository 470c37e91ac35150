"""Which hosts there are, and which of them may be used."""

from __future__ import annotations

import io
import logging
import random
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from horovod.runner.common.util import safe_shell_exec

from .worker import HostUpdateResult

_logger = logging.getLogger("horovod")


class HostState:
    """What is known of one host: whether it is shunned, until when, and who wants to know."""

    def __init__(self, cooldown_range: Sequence[int] | None = None) -> None:
        """Without a range a host that has failed is shunned for ever."""
        self._event = threading.Event()
        self._is_blacklisted = False
        self._failures = 0
        self._range = tuple(cooldown_range) if cooldown_range else None
        self._end_of_cooldown = 0.0

    def get_event(self) -> threading.Event:
        """Return an event that is set when the host is shunned the next time."""
        if self._event.is_set():
            self._event = threading.Event()
        return self._event

    def set_event(self) -> None:
        """Tell those who wait."""
        self._event.set()

    def blacklist(self) -> None:
        """Shun the host; a failure that comes while it is shunned counts no more."""
        if self.is_blacklisted() and not self.is_resurrected():
            return
        self._is_blacklisted = True
        self._failures += 1
        if self._range is not None:
            seconds = cooldown_seconds(self._failures, self._range[0], self._range[1], random.random())  # noqa: S311 - only spreads
            self._end_of_cooldown = time.time() + seconds
            _logger.info("host is used again in %.1f s at the earliest", seconds)
        self.set_event()

    def whitelist(self) -> None:
        """Use the host again; its failures are not forgotten."""
        self._is_blacklisted = False
        self._end_of_cooldown = 0.0

    def is_blacklisted(self) -> bool:
        """Whether the host is shunned, its time being over or not."""
        return self._is_blacklisted

    def is_resurrected(self) -> bool:
        """Whether the host is shunned and its time is over."""
        return self._is_blacklisted and self._range is not None and time.time() >= self._end_of_cooldown


def cooldown_seconds(failures: int, lower: float, upper: float, spread: float) -> float:
    """How long a host is shunned: twice as long each time, spread (0 to 1) so that hosts do not meet."""
    exponent = min(failures, 32)
    return min(max(lower * 2.0**exponent + spread * lower, lower), upper)


class DiscoveredHosts:
    """The hosts at one moment; those in host_assignment_order are used, in that order."""

    def __init__(self, host_slots: Mapping[str, int], host_assignment_order: Sequence[str]) -> None:
        """Keep them."""
        self._host_slots = dict(host_slots)
        self._host_assignment_order = list(host_assignment_order)

    @property
    def host_slots(self) -> dict[str, int]:
        """All hosts that were found."""
        return self._host_slots

    @property
    def available_hosts(self) -> set[str]:
        """Those that may be used."""
        return set(self._host_assignment_order)

    @property
    def host_assignment_order(self) -> list[str]:
        """The oldest first: their workers have the state."""
        return self._host_assignment_order

    def get_slots(self, host: str) -> int:
        """Return how many workers a host takes."""
        return self._host_slots.get(host, 0)

    def count_available_slots(self) -> int:
        """Return how many workers the usable hosts take."""
        return sum(self.get_slots(host) for host in self._host_assignment_order)

    def filter_blacklisted_hosts(self, blacklisted: Collection[str]) -> DiscoveredHosts:
        """Return the same without some hosts."""
        order = [host for host in self._host_assignment_order if host not in blacklisted]
        return DiscoveredHosts(self._host_slots, order)


class HostDiscovery:
    """Says which hosts there are."""

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """Return hosts, and how many workers each takes."""
        raise NotImplementedError


class HostDiscoveryScript(HostDiscovery):
    """Asks a program, which prints lines `host` or `host:slots`."""

    def __init__(self, discovery_script: str, slots: int | None) -> None:
        """Take the slots of hosts that the program names without."""
        self.discovery_script = discovery_script
        self.default_slots = slots

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """Run the program; RuntimeError if it fails or prints something else."""
        lines = [line.strip() for line in self._execute_discovery_script().splitlines()]
        return dict(self._read(line) for line in dict.fromkeys(lines) if line)

    def _execute_discovery_script(self) -> str:
        """Return what the program prints. Others that know the hosts otherwise take the place of this."""
        stdout = io.StringIO()
        exit_code = safe_shell_exec.execute(self.discovery_script, stdout=stdout)
        if exit_code != 0:
            message = f"host discovery script {self.discovery_script!r} ended with exit code {exit_code}"
            raise RuntimeError(message)
        return stdout.getvalue()

    def _read(self, line: str) -> tuple[str, int]:
        host, separator, slots = line.rpartition(":")
        if not separator and self.default_slots:
            return line, self.default_slots
        if not host or not slots.isdecimal():
            message = (
                f"host discovery script {self.discovery_script!r} printed {line!r}, expected host:slots"
                + ("" if separator else ", or host where --slots-per-host is given")
            )
            raise RuntimeError(message)
        return host, int(slots)


class FixedHosts(HostDiscovery):
    """Hosts that the program names itself."""

    def __init__(self, host_slots: Mapping[str, int]) -> None:
        """Take slots by host."""
        self._host_slots = dict(host_slots)

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """Return what was set last."""
        return dict(self._host_slots)

    def set(self, host_slots: Mapping[str, int]) -> None:
        """There are other hosts from now on."""
        self._host_slots = dict(host_slots)


class HostManager:
    """Keeps the hosts in a stable order, and those that have failed out of it."""

    def __init__(self, discovery: HostDiscovery, cooldown_range: Sequence[int] | None = None) -> None:
        """Ask `discovery` with each update."""
        self._discovery = discovery
        self._current_hosts = DiscoveredHosts({}, [])
        self._states: defaultdict[str, HostState] = defaultdict(lambda: HostState(cooldown_range))

    def update_available_hosts(self) -> HostUpdateResult:
        """Ask which hosts there are, and return what has changed since."""
        found = self._discovery.find_available_hosts_and_slots()
        returning = {host for host in found if self._states[host].is_resurrected()}
        result = compare_hosts(self._current_hosts.host_slots, found, returning)
        if result == HostUpdateResult.no_update:
            return result
        # A host that comes back has lost its place: its new workers have no state.
        previous_order = self.current_hosts.host_assignment_order
        for host in returning:
            self._states[host].whitelist()
        usable = [host for host in found if not self._states[host].is_blacklisted()]
        order = self.order_available_hosts(usable, previous_order)
        self._current_hosts = DiscoveredHosts(found, order)
        return result

    @property
    def current_hosts(self) -> DiscoveredHosts:
        """The hosts of the last update, without those that have failed since."""
        shunned = [host for host, state in self._states.items() if state.is_blacklisted()]
        return self._current_hosts.filter_blacklisted_hosts(shunned)

    def blacklist(self, host: str) -> None:
        """Shun a host on which a worker has failed, and end the workers that it has left."""
        if not self._states[host].is_blacklisted():
            _logger.info("blacklist failing host: %s", host)
        self._states[host].blacklist()

    def is_blacklisted(self, host: str) -> bool:
        """Whether a host is shunned."""
        return self._states[host].is_blacklisted()

    def get_host_event(self, host: str) -> threading.Event:
        """Return an event that is set when the host is shunned."""
        return self._states[host].get_event()

    @staticmethod
    def order_available_hosts(available: Iterable[str], previous_order: Sequence[str]) -> list[str]:
        """Old hosts first, in their order, so that low ranks have the state; then the new ones."""
        wanted = list(available)
        kept = [host for host in previous_order if host in wanted]
        return kept + [host for host in wanted if host not in kept]


def compare_hosts(
    before: Mapping[str, int], after: Mapping[str, int], returning: Collection[str] = ()
) -> HostUpdateResult:
    """Say whether hosts or slots were added, removed or both."""
    result = HostUpdateResult.no_update
    for host in {**before, **after}:
        if host in returning or after.get(host, 0) > before.get(host, 0):
            result |= HostUpdateResult.added
        if after.get(host, 0) < before.get(host, 0) or (host in before and host not in after):
            result |= HostUpdateResult.removed
    return result
