"""The driver's loop of an elastic job: what happens goes to the decider, what it decides is carried out.

There is no decision in here.
"""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from horovod._cluster.job import Job
from horovod.runner.elastic import driver as elastic_driver

from .decider import Decided, Decider, Limits
from .exchange import Exchange, Heard
from .line import Kind, line_key
from .seat import Seat

_LOG = logging.getLogger("horovod")
_LOOK_SECONDS = 0.1
_STORE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a worker has ended; code 0: well."""

    worker: int
    code: int
    how: str


@dataclass(slots=True)
class JobEnd:
    """How the job has ended; code 0: well. The newest rank of each worker that had one, by its number."""

    code: int
    reason: str
    ranks: dict[int, tuple[int, int]] = field(default_factory=dict)  # epoch, rank


class Engine(Protocol):
    """Starts and ends workers. All calls come from the thread of the driver."""

    def hosts(self) -> Mapping[str, int]:
        """Which hosts there are, and how many workers each takes. Names have no blanks."""

    def start(self, seat: Seat) -> None:
        """Start a worker; what goes wrong is an end of it."""

    def tell(self, worker: int, packet: bytes) -> None:
        """Hand a packet to the core of a worker."""

    def kill(self, worker: int) -> None:
        """End a worker; its end is told by `look`."""

    def hear(self, heard: Heard) -> int | None:
        """Take what came over a line; the worker's number if it is a packet of its core."""

    def look(self) -> list[Ended]:
        """Workers that have ended since; also the time to do what is due."""


class ElasticDriver:
    """One job; everything is for one thread."""

    def __init__(self, limits: Limits, silence_seconds: float | None = None) -> None:
        """Start the decider, and listen. Lines that are silent for so long are lost."""
        self.job = Job.create()
        self._events: queue.Queue[Any] = queue.Queue()
        self.exchange = Exchange(line_key(self.job.key), limits.nics, self._events, silence_seconds)
        try:
            self._decider = Decider(limits, self.job.key, self._events)
        except BaseException:
            self.exchange.close()
            raise
        self._limits = limits
        self._store: str | None = None
        self._hosts: dict[str, int] | None = None
        self._discovery_failure: str | None = None  # that was said already
        self._end: JobEnd | None = None
        self.ranks: dict[int, tuple[int, int]] = {}
        self.epoch = 0

    def close(self) -> None:
        """End the decider and all lines."""
        self._decider.close()
        self.exchange.close()

    def run(
        self, engine: Engine, variables: Mapping[str, str], look: Callable[[], None] | None = None
    ) -> JobEnd:
        """Carry out the job. `look` is called some times a second; what it raises ends the job."""
        self._await_store()
        discover_at = 0.0
        while self._end is None:
            if time.monotonic() >= discover_at:
                self._discover(engine)
                discover_at = time.monotonic() + elastic_driver.DISCOVER_HOSTS_FREQUENCY_SECS
            self._take_events(engine, variables)
            for ended in engine.look():
                self._decider.end(ended.worker, ended.code, ended.how)
                discover_at = 0.0  # the engine may have lost more than a worker
            if look is not None:
                look()
        return self._end

    def _discover(self, engine: Engine) -> None:
        """Pass on which hosts there are, if that has changed. Once known, they survive a failed look."""
        try:
            found = {host: slots for host, slots in engine.hosts().items() if slots > 0}
        except Exception as error:
            if self._hosts is None:
                raise
            if str(error) != self._discovery_failure:
                _LOG.warning("elastic job: the hosts stay as they are known: %s", error)
            self._discovery_failure = str(error)
            return
        self._discovery_failure = None
        if found != self._hosts:
            self._decider.hosts(found)
            self._hosts = found

    def _await_store(self) -> None:
        end = time.monotonic() + _STORE_SECONDS
        while self._store is None:
            try:
                event = self._events.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                message = f"the launcher did not begin to decide within {_STORE_SECONDS:g} s"
                raise RuntimeError(message) from None
            action = self._action_of(event)
            if action is not None and action["do"] == "store":
                self._store = str(action["addresses"])

    def _action_of(self, event: Any) -> Mapping[str, Any] | None:
        if not isinstance(event, Decided):
            return None
        if event.action is None and self._end is None:
            message = f"the launcher has stopped to decide: {self._decider.complaint()}"
            raise RuntimeError(message)
        return event.action

    def _take_events(self, engine: Engine, variables: Mapping[str, str]) -> None:
        wait: float | None = _LOOK_SECONDS
        while self._end is None:
            try:
                event = self._events.get(timeout=wait) if wait else self._events.get_nowait()
            except queue.Empty:
                return
            wait = None
            if isinstance(event, Heard):
                worker = engine.hear(event)
                if worker is not None and event.kind is Kind.PACKET:
                    self._decider.message(worker, event.body)
                continue
            action = self._action_of(event)
            if action is not None:
                self._carry_out(action, engine, variables)

    def _carry_out(self, action: Mapping[str, Any], engine: Engine, variables: Mapping[str, str]) -> None:
        what = action["do"]
        if what == "start":
            engine.start(self._seat(action, variables))
        elif what == "tell":
            if "rank" in action:
                self.epoch = int(action["epoch"])
                self.ranks[int(action["worker"])] = (self.epoch, int(action["rank"]))
            engine.tell(int(action["worker"]), bytes.fromhex(action["message"]))
        elif what == "kill":
            engine.kill(int(action["worker"]))
        elif what == "say":
            _LOG.log(_level_of(action["event"]), "elastic job: %s", action["reason"])
        elif what == "end":
            self._end = JobEnd(int(action["exit_code"]), str(action["reason"]), self.ranks)

    def _seat(self, action: Mapping[str, Any], variables: Mapping[str, str]) -> Seat:
        assert self._store is not None  # noqa: S101 - awaited before
        extra = dict(variables)
        if self._limits.timeout_seconds is not None:
            extra.setdefault("HOROVOD_ELASTIC_TIMEOUT", str(self._limits.timeout_seconds))
        if self._limits.nics:
            extra.setdefault("HOROVOD_GLOO_IFACE", ",".join(sorted(self._limits.nics)))
        return Seat(
            job=self.job.name,
            version=self.job.version,
            worker=int(action["worker"]),
            host=str(action["host"]),
            slot=int(action["slot"]),
            store=self._store,
            driver=self.exchange.addresses(),
            key=self.job.key,
            variables=extra,
        )


_LOUD = {"failed", "killed", "waiting", "discovery_failed"}


def _level_of(event: str) -> int:
    return logging.WARNING if event in _LOUD else logging.INFO
