"""Spark as the engine of an elastic job: a task is a host with one slot, as long as its line holds."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from horovod._cluster.elastic.driver import Ended
from horovod._cluster.elastic.exchange import Exchange, Heard
from horovod._cluster.elastic.line import Kind
from horovod._cluster.elastic.seat import Seat
from horovod._cluster.failures import Failure
from horovod.runner.common.util.timeout import TimeoutException

from ._failure_text import from_json


@dataclass(slots=True)
class _Task:
    """A task that has called."""

    caller: str
    hostname: str
    attempt: int
    generation: int = 0
    worker: int | None = None
    parts: list[bytes] = field(default_factory=list)

    @property
    def host(self) -> str:
        """Its name as a host: another one for each attempt, and after a worker that failed."""
        return f"{self.hostname}/{self.caller}.{self.generation}"


class SparkEngine:
    """All calls come from the thread of the driver."""

    def __init__(
        self,
        exchange: Exchange,
        *,
        num_proc: int,
        most_failures: int,
        start_seconds: float,
        check: Callable[[], None],
        is_member: Callable[[int], bool],
    ) -> None:
        """`most_failures`: of one task, then Spark gives up. `check` raises if the Spark job has ended.

        `is_member` says whether a worker has had a rank.
        """
        self._exchange = exchange
        self._num_proc = num_proc
        self._most_failures = most_failures
        self._start_seconds = start_seconds
        self._start_by: float | None = time.monotonic() + start_seconds
        self._check = check
        self._is_member = is_member
        self._tasks: dict[str, _Task] = {}
        self._by_worker: dict[int, _Task] = {}
        self._ended: list[Ended] = []
        self.results: dict[int, Any] = {}
        self.failures: list[Failure] = []

    def hosts(self) -> dict[str, int]:
        """The tasks that are there."""
        return {task.host: 1 for task in self._tasks.values()}

    def start(self, seat: Seat) -> None:
        """Let the task of the host start a process."""
        task = next((one for one in self._tasks.values() if one.host == seat.host), None)
        if task is None:
            self._ended.append(Ended(seat.worker, 1, "could not be started: its Spark task has gone"))
            return
        task.worker = seat.worker
        task.parts = []
        self._by_worker[seat.worker] = task
        # The task has the key; it does not travel here.
        fields = {name: value for name, value in asdict(seat).items() if name != "key"}
        self._exchange.send(task.caller, Kind.START, json.dumps(fields).encode())

    def tell(self, worker: int, packet: bytes) -> None:
        """Hand a packet to the core of a worker."""
        if worker in self._by_worker:
            self._exchange.send(self._by_worker[worker].caller, Kind.PACKET, packet)

    def kill(self, worker: int) -> None:
        """End a worker."""
        if worker in self._by_worker:
            self._exchange.send(self._by_worker[worker].caller, Kind.KILL)

    def hear(self, heard: Heard) -> int | None:
        """Take what a task says."""
        if heard.kind is Kind.HELLO:
            said = json.loads(heard.body)
            self._tasks[heard.caller] = _Task(heard.caller, str(said["hostname"]), int(said["attempt"]))
            if len(self._tasks) >= self._num_proc:
                self._start_by = None
            return None
        task = self._tasks.get(heard.caller)
        if task is None:
            return None
        if heard.kind is None:
            self._lose(task, heard.body.decode())
        elif heard.kind is Kind.RESULT:
            task.parts.append(heard.body)
        elif heard.kind is Kind.ENDED:
            self._end(task, json.loads(heard.body))
        return task.worker

    def look(self) -> list[Ended]:
        """Workers that have ended since."""
        self._check()
        if self._start_by is not None and time.monotonic() >= self._start_by:
            message = (
                f"Timed out waiting for Spark tasks to start: {len(self._tasks)} of {self._num_proc} had "
                f"called after {self._start_seconds:g} seconds. Are there enough free slots, and can the "
                "executors reach this host?"
            )
            raise TimeoutException(message)
        ended, self._ended = self._ended, []
        return ended

    def finish(self) -> None:
        """Tell all tasks that the job has ended."""
        for caller in self._tasks:
            self._exchange.send(caller, Kind.OVER)

    def _lose(self, task: _Task, reason: str) -> None:
        del self._tasks[task.caller]
        if task.worker is not None:
            self._by_worker.pop(task.worker)
            how = f"was lost: its Spark task on {task.hostname} has gone ({reason})"
            self._ended.append(Ended(task.worker, 1, how))

    def _end(self, task: _Task, said: Mapping[str, Any]) -> None:
        worker, code = int(said["worker"]), int(said["code"])
        if worker != task.worker:
            return
        self._by_worker.pop(worker)
        task.worker = None
        if code == 0 and task.parts:
            self.results[worker] = pickle.loads(b"".join(task.parts))  # noqa: S301 - of our own task
        if "failure" in said:
            self.failures.append(from_json(said["failure"]))
        self._ended.append(Ended(worker, code, str(said["how"])))
        # A worker that never had a place fails again: the decider has to see that it is the same host.
        if code != 0 and self._is_member(worker):
            self._renew(task, str(said["how"]))

    def _renew(self, task: _Task, how: str) -> None:
        """Let Spark find another place for the task; where that would end the job, use this one again."""
        if task.attempt + 1 < self._most_failures:
            del self._tasks[task.caller]
            self._exchange.send(task.caller, Kind.FAIL, f"the worker {how}".encode())
        else:
            task.generation += 1
