"""Elastic jobs behind RayExecutor (min_workers, max_workers): workers come and go while the function runs."""

from __future__ import annotations

import logging
import queue as queues
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from horovod._cluster.elastic.decider import Limits
from horovod._cluster.elastic.driver import ElasticDriver, JobEnd
from horovod.common.exceptions import HorovodInternalError

from ._elastic_engine import RayEngine
from ._elastic_worker import Work
from ._ship import Call, ship
from .adapter import Adapter, BaseParams
from .discovery import RayHostDiscovery

__all__ = ["ElasticAdapter", "ElasticParams", "RayHostDiscovery", "TestDiscovery"]

_logger = logging.getLogger("horovod.ray")


@dataclass
class ElasticParams(BaseParams):
    """Limits of an elastic job."""

    min_workers: int = 1
    max_workers: int | None = None
    reset_limit: int | None = None
    cooldown_range: Sequence[int] | None = None
    elastic_timeout: int = 600
    override_discovery: bool = True

    @property
    def elastic(self) -> bool:
        """Whether the number of workers changes."""
        return True

    def limits(self, settings: Any) -> Limits:
        """As the decider takes them."""
        return Limits(
            least=self.min_workers,
            first=self.min_workers,
            most=self.max_workers,
            resets=self.reset_limit,
            timeout_seconds=int(self.elastic_timeout),
            cooldown_range=self.cooldown_range,
            nics=sorted(getattr(settings, "nics", None) or ()),
        )


class ElasticAdapter(Adapter):
    """Each call of run() or execute() is a job: its workers are started for it, and end with it."""

    def __init__(self, settings: Any, params: ElasticParams) -> None:
        """Start nothing yet."""
        self.settings = settings
        self.params = params
        self._make_executable: Callable[[], Any] | None = None
        self._variables: dict[str, str] | None = None

    def start(
        self,
        executable_cls: type | None = None,
        executable_args: Sequence[Any] | None = None,
        executable_kwargs: Mapping[str, Any] | None = None,
        extra_env_vars: Mapping[str, str] | None = None,
    ) -> None:
        """Keep what every worker begins with."""
        if executable_cls is not None:
            self._make_executable = partial(
                executable_cls, *(executable_args or ()), **dict(executable_kwargs or {})
            )
        self._variables = {name: str(value) for name, value in (extra_env_vars or {}).items()}
        self._variables.setdefault("PYTHONUNBUFFERED", "1")
        timeout = getattr(self.settings, "timeout_s", None)
        if timeout:
            self._variables.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", str(int(timeout)))

    def execute(
        self, fn: Callable[[Any], Any], callbacks: Sequence[Callable[..., Any]] | None = None
    ) -> list[Any]:
        """Call `fn(executable)` on every worker; results by rank."""
        return self._run("execute", fn, fn, callbacks)

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[Any]:
        """Call `fn(*args, **kwargs)` on every worker; results of those that finished, by rank."""
        return self._run("run", Call(fn, tuple(args or ()), dict(kwargs or {})), fn, callbacks)

    def run_remote(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Refuse: who the workers are is known at the end alone."""
        del fn, args, kwargs
        message = "RayExecutor.run_remote: elastic jobs have no reference per rank; use run()"
        raise NotImplementedError(message)

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        """Refuse: there are no workers between two jobs."""
        del fn
        message = "RayExecutor.execute_single: elastic jobs have no workers between two runs; use run()"
        raise NotImplementedError(message)

    def shutdown(self) -> None:
        """Nothing is left of a job that has ended."""
        self._variables = None

    def _run(
        self,
        what: str,
        function: Callable[[Any], Any],
        named: Any,
        callbacks: Sequence[Callable[..., Any]] | None,
    ) -> list[Any]:
        if self._variables is None:
            message = f"RayExecutor.{what}: call start() first"
            raise RuntimeError(message)
        who = f"RayExecutor.{what}"
        work = ship(who, Work(function, self._make_executable), named)
        queue = _make_queue() if callbacks else None
        driver = ElasticDriver(self.params.limits(self.settings))
        engine = RayEngine(
            self.params,
            driver.exchange,
            work,
            start_seconds=float(getattr(self.settings, "placement_group_timeout_s", None) or 100),
            discovery=self._discovery(),
            queue=queue,
        )
        try:
            end = driver.run(
                engine, self._variables, None if queue is None else partial(_drain, queue, callbacks or ())
            )
            if queue is not None:
                _drain(queue, callbacks or ())
        finally:
            engine.close()
            driver.close()
            if queue is not None:
                queue.shutdown(force=True)
        if end.code != 0:
            raise_failure(who, end, engine.failures)
        return _by_rank(end, engine.results)

    def _discovery(self) -> Any:
        """Of the settings, if it may be; None: all nodes of the cluster."""
        return None if self.params.override_discovery else getattr(self.settings, "discovery", None)


def _make_queue() -> Any:
    from ray.util.queue import Queue  # noqa: PLC0415 - an actor of its own, which few jobs need

    return Queue(actor_options={"num_cpus": 0})


def _drain(queue: Any, callbacks: Sequence[Callable[..., Any]]) -> None:
    """Give the callbacks what workers have logged."""
    while True:
        try:
            value = queue.get_nowait()
        except queues.Empty:
            return
        for callback in callbacks:
            callback(value)


def _by_rank(end: JobEnd, results: Mapping[int, Any]) -> list[Any]:
    workers = sorted(results, key=lambda worker: (end.ranks.get(worker, (0, 0))[1], worker))
    return [results[worker] for worker in workers]


def raise_failure(what: str, end: JobEnd, failures: Sequence[Exception]) -> None:
    """Raise why the job has failed, from the first failure of a worker that says more than a consequence."""
    causes = [error for error in failures if not isinstance(error, HorovodInternalError)] or failures
    message = f"{what}: the elastic job has failed: {end.reason}"
    raise RuntimeError(message) from (causes[0] if causes else None)


class TestDiscovery(RayHostDiscovery):
    """Takes hosts away and gives them back at random: for trying a program."""

    __test__ = False  # pytest takes it for tests of its own

    def __init__(
        self,
        min_hosts: int,
        max_hosts: int,
        change_frequency_s: int,
        use_gpu: bool = False,
        cpus_per_worker: int = 1,
        gpus_per_worker: int = 1,
        verbose: bool = True,
        _graceful: bool = True,
    ) -> None:
        """Change something every `change_frequency_s` seconds, between the two numbers of hosts."""
        super().__init__(use_gpu, cpus_per_worker, gpus_per_worker)
        if not _graceful:
            _logger.warning(
                "TestDiscovery takes hosts out of its answer; it ends no machines (_graceful=False)"
            )
        self._min_hosts = min_hosts
        self._max_hosts = max_hosts
        self._change_frequency_s = change_frequency_s
        self._verbose = verbose
        self._removed: set[str] = set()
        self._changed_at = time.monotonic()

    def find_available_hosts_and_slots(self) -> dict[str, int]:
        """The slots of the hosts that are not taken away just now, by address."""
        hosts = super().find_available_hosts_and_slots()
        if time.monotonic() - self._changed_at >= self._change_frequency_s:
            self._changed_at = time.monotonic()
            self._change(hosts)
        return {host: slots for host, slots in hosts.items() if host not in self._removed}

    def _change(self, hosts: Mapping[str, int]) -> None:
        here = [host for host in hosts if host not in self._removed]
        away = [host for host in hosts if host in self._removed]
        may_remove = len(here) > self._min_hosts
        may_add = bool(away) and len(here) < self._max_hosts
        if may_add and (not may_remove or random.getrandbits(1)):
            self._removed.discard(random.choice(away))  # noqa: S311
        elif may_remove:
            self._removed.add(random.choice(here))  # noqa: S311
        if self._verbose:
            _logger.info("TestDiscovery: %s are taken away", sorted(self._removed))
