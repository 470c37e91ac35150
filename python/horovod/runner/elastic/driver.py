"""ElasticDriver: keeps a job of at least min_num_proc workers going on the hosts there are."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from horovod.common._renamed import renamed
from horovod.runner.common.util import hosts, timeout

from ._results import Results, ResultsRecorder
from .discovery import DiscoveredHosts, HostDiscovery, HostManager
from .registration import WorkerStateRegistry
from .worker import HostUpdateResult, WorkerNotificationClient

DISCOVER_HOSTS_FREQUENCY_SECS = 1.0
ELASTIC_TIMEOUT_SECS = 600

_logger = logging.getLogger("horovod")

CreateWorker = Callable[[hosts.SlotInfo, list[threading.Event]], tuple[int, float]]
_Assignments = dict[str, list[hosts.SlotInfo]]


class ElasticDriver:
    """Starts workers by a function of the program, and again where hosts come back or are added.

    The function runs one worker to its end, ends it when one of the events is set, and returns exit code
    and time; it runs in a thread for each worker.
    """

    @renamed(min_np="min_num_proc", max_np="max_num_proc")
    def __init__(
        self,
        rendezvous: Any,
        discovery: HostDiscovery,
        min_num_proc: int,
        max_num_proc: int | None,
        timeout: float | None = None,
        reset_limit: int | None = None,
        cooldown_range: Sequence[int] | None = None,
        verbose: int = 0,
    ) -> None:
        """Look for hosts from now on; `rendezvous` learns every new assignment by init(list)."""
        self._rendezvous = rendezvous
        self._host_manager = HostManager(discovery, cooldown_range)
        self._min_num_proc = min_num_proc
        self._max_num_proc = max_num_proc
        self._verbose = verbose
        self._host_assignments: _Assignments = {}
        self._rank_assignments: dict[int, hosts.SlotInfo] = {}
        self._world_size = 0
        self._wait_hosts_cond = threading.Condition()
        self._create_worker_fn: CreateWorker | None = None
        self._worker_clients: dict[tuple[str, int], WorkerNotificationClient] = {}
        self._worker_registry = WorkerStateRegistry(self, self._host_manager, reset_limit=reset_limit)
        self._results = ResultsRecorder()
        self._shutdown = threading.Event()
        self._timeout = timeout or float(os.environ.get("HOROVOD_ELASTIC_TIMEOUT") or ELASTIC_TIMEOUT_SECS)
        self._discovery_thread = threading.Thread(
            target=self._discover_hosts, name="hvd-discovery", daemon=True
        )
        self._discovery_thread.start()

    # ---- life of a job

    @renamed(np="num_proc")
    def start(self, num_proc: int, create_worker_fn: CreateWorker) -> None:
        """Wait for so many slots, and start a worker in every slot that may be used."""
        self._create_worker_fn = create_worker_fn
        self._activate_workers(num_proc)

    def resume(self) -> None:
        """Begin the next world: old workers get new ranks, new slots new workers."""
        self._activate_workers(self._min_num_proc)

    def stop(self, error_message: str | None = None) -> None:
        """End the job: workers are ended, nobody waits any more."""
        self._results.set_error_message(error_message)
        self._shutdown.set()
        self._rendezvous.stop()
        if threading.current_thread() is not self._discovery_thread:
            self._discovery_thread.join()

    def finished(self) -> bool:
        """Whether the job has ended."""
        return self._shutdown.is_set()

    def get_results(self) -> Results:
        """Wait until all workers have ended, and return how."""
        return self._results.get_results()

    # ---- what workers say and ask

    def register_worker_server(
        self, host: str, slot: int, addresses: dict[str, list[tuple[str, int]]], secret_key: bytes
    ) -> None:
        """A worker can be told of changes at these addresses."""
        self._worker_clients[host, slot] = WorkerNotificationClient(addresses, secret_key, self._verbose)

    def get_worker_client(self, slot_info: hosts.SlotInfo) -> WorkerNotificationClient | None:
        """Return how a worker is told; None: it has not said."""
        return self._worker_clients.get((slot_info.hostname, slot_info.local_rank))

    def record_ready(self, host: str, slot: int) -> None:
        """A worker waits for the next world; returns when that has begun."""
        self._worker_registry.record_ready(host, slot)

    def world_size(self) -> int:
        """Return the number of ranks."""
        return self._world_size

    def local_size(self, host: str) -> int:
        """Return the number of ranks of a host."""
        return len(self._host_assignments.get(host, ()))

    def get_slot_info(self, host: str, slot: int) -> hosts.SlotInfo:
        """Return the place of a worker; INVALID_SLOT_INFO: it has none any more."""
        if not self.has_rank_assignment(host, slot):
            return hosts.INVALID_SLOT_INFO
        return self._host_assignments[host][slot]

    def get_coordinator_info(self) -> hosts.SlotInfo | None:
        """Return the place of rank 0."""
        return self._rank_assignments.get(0)

    def has_rank_assignment(self, host: str, slot: int) -> bool:
        """Whether a worker is part of the world."""
        return not self._host_manager.is_blacklisted(host) and slot < self.local_size(host)

    @property
    def host_assignments(self) -> _Assignments:
        """The places of the world, by host."""
        return self._host_assignments

    @renamed(min_np="min_num_proc")
    def wait_for_available_slots(self, min_num_proc: int, min_hosts: int = 1) -> DiscoveredHosts:
        """Wait for slots and hosts; TimeoutException when the time is over, RuntimeError after a stop."""
        text = (
            "Timed out waiting for {activity}. Please check that you have enough resources to run at "
            f"least {min_num_proc} Horovod processes."
        )
        if min_hosts > 1:
            text += f" The job needs {min_hosts} hosts, to find the network interfaces they have in common."
        limit = timeout.Timeout(self._timeout, message=text)
        with self._wait_hosts_cond:
            while True:
                current = self._host_manager.current_hosts
                has_slots = current.count_available_slots() >= min_num_proc
                if has_slots and len(current.available_hosts) >= min_hosts:
                    return current
                if self._shutdown.is_set():
                    message = "Job has been shutdown, see above error messages for details."
                    raise RuntimeError(message)
                self._wait_hosts_cond.wait(min(limit.remaining(), _LOOK_SECONDS))
                limit.check_time_out_for("minimum number of slots to become available")

    # ---- worlds

    def _activate_workers(self, min_num_proc: int) -> None:
        current = self.wait_for_available_slots(min_num_proc)
        pending = self._update_host_assignments(current)
        self._worker_registry.reset(self.world_size())
        for slot_info in pending:
            self._start_worker_process(slot_info)

    def _assignments_on(self, current: DiscoveredHosts) -> tuple[_Assignments, list[hosts.SlotInfo]]:
        infos = [hosts.HostInfo(host, current.get_slots(host)) for host in current.host_assignment_order]
        slots = hosts.get_host_assignments(infos, self._min_num_proc, self._max_num_proc)
        by_host: defaultdict[str, list[hosts.SlotInfo]] = defaultdict(list)
        for slot_info in slots:
            by_host[slot_info.hostname].append(slot_info)
        return dict(by_host), slots

    def _update_host_assignments(self, current: DiscoveredHosts) -> list[hosts.SlotInfo]:
        """Take the new places; returns those that have no worker yet."""
        running = {(host, s.local_rank) for host, slots in self._host_assignments.items() for s in slots}
        assignments, slots = self._assignments_on(current)
        if self._host_assignments and not self._host_assignments.keys() & assignments.keys():
            message = "No hosts from previous set remaining, unable to broadcast state."
            raise RuntimeError(message)
        self._host_assignments = assignments
        self._world_size = len(slots)
        self._rendezvous.init(slots)
        self._rank_assignments = {slot_info.rank: slot_info for slot_info in slots}
        return [s for s in slots if (s.hostname, s.local_rank) not in running]

    # ---- workers

    def _start_worker_process(self, slot_info: hosts.SlotInfo) -> None:
        create_worker = self._create_worker_fn
        if create_worker is None:
            message = "ElasticDriver: resume() before start()"
            raise RuntimeError(message)
        host_event = self._host_manager.get_host_event(slot_info.hostname)

        def run_worker() -> None:
            exit_code, timestamp = create_worker(slot_info, [self._shutdown, host_event])
            self._handle_worker_exit(slot_info, exit_code, timestamp)

        thread = threading.Thread(target=run_worker, daemon=True)
        thread.start()
        self._results.expect(thread)

    def _handle_worker_exit(self, slot_info: hosts.SlotInfo, exit_code: int, timestamp: float) -> None:
        host, slot = slot_info.hostname, slot_info.local_rank
        if not self.has_rank_assignment(host, slot):
            _logger.debug("%s[%d] has no rank any more, its exit code %d is ignored", host, slot, exit_code)
            return
        record = self._worker_registry.record_success if exit_code == 0 else None
        rendezvous_id = (record or self._worker_registry.record_failure)(host, slot)
        if self.finished() and self._worker_registry.last_rendezvous() == rendezvous_id:
            self._results.add_result(f"{host}[{slot}]", (exit_code, timestamp))

    # ---- hosts

    def _discover_hosts(self) -> None:
        is_first = True
        while not self._shutdown.is_set():
            with self._wait_hosts_cond:
                try:
                    update = self._host_manager.update_available_hosts()
                    if update != HostUpdateResult.no_update:
                        self._notify_workers_host_changes(self._host_manager.current_hosts, update)
                        self._wait_hosts_cond.notify_all()
                except RuntimeError as error:
                    if is_first:
                        # The script itself is wrong: waiting would not help.
                        _logger.error("host discovery failed, the job ends: %s", error)  # noqa: TRY400 - the text says it
                        self._shutdown.set()
                        self._wait_hosts_cond.notify_all()
                        return
                    _logger.warning("host discovery failed, trying again: %s", error)
            is_first = False
            self._shutdown.wait(DISCOVER_HOSTS_FREQUENCY_SECS)

    def _notify_workers_host_changes(self, current: DiscoveredHosts, update: HostUpdateResult) -> None:
        """Tell rank 0, if the change would lead to another world."""
        following: _Assignments = {}
        if current.count_available_slots() >= self._min_num_proc:
            following, _ = self._assignments_on(current)
        if following == self.host_assignments:
            return
        coordinator = self.get_coordinator_info()
        client = None if coordinator is None else self.get_worker_client(coordinator)
        if client is None:
            return
        try:
            client.notify_hosts_updated(_epoch_time_s(), update)
        except OSError as error:
            _logger.warning("rank 0 cannot be told that hosts have changed: %s", error)


def _epoch_time_s() -> int:
    return int(time.time())


_LOOK_SECONDS = 1.0
"""A stop does not tell those who wait for hosts."""
