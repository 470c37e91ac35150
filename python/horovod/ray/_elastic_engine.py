"""Ray as the engine of an elastic job: nodes are hosts, actors are workers, Ray says who has died."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from horovod._cluster.elastic.driver import Ended
from horovod._cluster.elastic.exchange import Exchange, Heard
from horovod._cluster.elastic.line import Kind
from horovod._cluster.elastic.seat import Seat

from ._elastic_worker import ElasticWorker, Left
from .adapter import BaseParams
from .discovery import hosts_and_slots

# A worker whose line has ended is dead, which Ray says within this time; or it cannot be told anything.
_SILENT_SECONDS = 15.0
_MOST_CHARACTERS = 300


@dataclass(slots=True)
class _Running:
    actor: Any
    outcome: Any
    start_by: float | None  # until it has called
    lost_at: float | None = None  # the end of its line
    why_killed: str | None = None


def node_hosts(nodes: Sequence[Mapping[str, Any]], params: BaseParams) -> dict[str, tuple[str, int]]:
    """Node and slots of each host, which is a node of Ray; pure.

    Several nodes may have one address, so the name of a host has a part of the node's identity in it.
    """
    gpus = params.gpus_per_worker if params.use_gpu else None
    found: dict[str, tuple[str, int]] = {}
    for node in nodes:
        slots = sum(hosts_and_slots([node], params.cpus_per_worker, gpus).values())
        if slots > 0:
            found[f"{node['NodeManagerAddress']}/{node['NodeID'][:8]}"] = (node["NodeID"], slots)
    return found


class RayEngine:
    """All calls come from the thread of the driver."""

    def __init__(
        self,
        params: BaseParams,
        exchange: Exchange,
        work: Any,
        *,
        start_seconds: float,
        discovery: Any = None,
        queue: Any = None,
    ) -> None:
        """Without a `discovery` every node is used; with one, the addresses that it names.

        A worker that has not called after `start_seconds` is given up: its node has no room, for example.
        """
        self._params = params
        self._exchange = exchange
        self._work = work
        self._start_seconds = start_seconds
        self._discovery = discovery
        self._queue = queue
        self._nodes: dict[str, str] = {}
        self._slots: dict[str, int] = {}
        self._running: dict[int, _Running] = {}
        self._not_started: list[Ended] = []
        self.results: dict[int, Any] = {}
        self.failures: list[Exception] = []

    def hosts(self) -> dict[str, int]:
        """Which hosts there are."""
        if self._discovery is not None:
            named: Mapping[str, int] = self._discovery.find_available_hosts_and_slots()
            self._slots = {str(host): int(slots) for host, slots in named.items()}
        else:
            found = node_hosts(ray.nodes(), self._params)
            self._nodes.update({host: node for host, (node, _) in found.items()})
            self._slots = {host: slots for host, (_, slots) in found.items()}
        return self._slots

    def start(self, seat: Seat) -> None:
        """Start an actor on the node of its host."""
        options: dict[str, Any] = {
            "num_cpus": self._params.cpus_per_worker,
            "num_gpus": self._params.gpus_per_worker,
            "max_restarts": 0,
        }
        if self._params.gpus_per_worker:
            # All that the workers of the host have, as hvd.local_rank() counts them.
            count = self._slots.get(seat.host, 1) * self._params.gpus_per_worker
            devices = ",".join(str(gpu) for gpu in range(count))
            seat = replace(seat, variables={**seat.variables, "CUDA_VISIBLE_DEVICES": devices})
        node = self._nodes.get(seat.host)
        if node is not None:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=False)
        else:
            options["resources"] = {f"node:{seat.host}": 0.001}
        try:
            actor = ray.remote(ElasticWorker).options(**options).remote(seat, self._queue)
            outcome = actor.work.remote(self._work)
            self._running[seat.worker] = _Running(actor, outcome, time.monotonic() + self._start_seconds)
        except (RayError, ValueError) as error:
            self._not_started.append(Ended(seat.worker, 1, f"could not be started: {error}"))

    def tell(self, worker: int, packet: bytes) -> None:
        """Hand a packet to the core of a worker."""
        self._exchange.send(str(worker), Kind.PACKET, packet)

    def kill(self, worker: int, why: str = "was killed") -> None:
        """End a worker."""
        running = self._running.get(worker)
        if running is not None:
            running.why_killed = why
            ray.kill(running.actor)

    def hear(self, heard: Heard) -> int | None:
        """Whose packet it is. A line that ends belongs to a worker that has ended, mostly."""
        running = self._running.get(int(heard.caller)) if heard.caller.isdecimal() else None
        if running is None:
            return None
        if heard.kind is None:
            running.lost_at = time.monotonic()
        running.start_by = None
        return int(heard.caller)

    def look(self) -> list[Ended]:
        """Workers that have ended since."""
        ended, self._not_started = self._not_started, []
        by_outcome = {running.outcome: worker for worker, running in self._running.items()}
        if by_outcome:
            ready, _ = ray.wait(list(by_outcome), num_returns=len(by_outcome), timeout=0)
            ended += [self._take_outcome(by_outcome[outcome]) for outcome in ready]
        now = time.monotonic()
        for worker, running in self._running.items():
            if running.why_killed is not None:
                continue
            if running.lost_at is not None and now - running.lost_at > _SILENT_SECONDS:
                self.kill(worker, "lost its connection to the driver and was killed")
            elif running.start_by is not None and now >= running.start_by:
                self.kill(worker, f"did not start within {self._start_seconds:g} s and was given up")
        return ended

    def _take_outcome(self, worker: int) -> Ended:
        running = self._running.pop(worker)
        try:
            value = ray.get(running.outcome)
        except RayActorError as error:
            self.failures.append(error)
            return Ended(worker, 1, running.why_killed or f"was lost: {_shorten(error)}")
        except RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            self.failures.append(error)
            return Ended(worker, 1, f"raised {type(cause).__name__}: {_shorten(cause)}")
        except RayError as error:
            self.failures.append(error)
            return Ended(worker, 1, f"was lost: {_shorten(error)}")
        finally:
            ray.kill(running.actor)  # its process was for this job alone
        if isinstance(value, Left):
            how = "left" if value.code == 0 else f"exited with code {value.code}"
            return Ended(worker, value.code, how)
        self.results[worker] = value
        return Ended(worker, 0, "has finished")

    def close(self) -> None:
        """End all workers that are left."""
        for running in self._running.values():
            ray.kill(running.actor)
        self._running.clear()


def _shorten(error: Exception) -> str:
    """The first lines of an error that are worth a place in one line."""
    text = " ".join(str(error).split())
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} ..."
