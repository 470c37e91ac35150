"""A job with a fixed number of workers on Ray actors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.placement_group import get_current_placement_group

from horovod._cluster.job import Job, assign

from ._collect import collect, raise_cause
from ._ship import Call, ship
from .adapter import Adapter, BaseParams
from .strategy import BaseStrategy, ColocatedStrategy, PGStrategy


@dataclass
class StaticParams(BaseParams):
    """How many workers, and where."""

    num_workers: int | None = None
    num_hosts: int | None = None
    num_workers_per_host: int = 1
    use_current_placement_group: bool = True

    @property
    def elastic(self) -> bool:
        """Whether the number of workers changes."""
        return False


class StaticAdapter(Adapter):
    """Starts actors, takes them into a job, and ends everything if one of them dies."""

    def __init__(self, settings: Any, params: StaticParams) -> None:
        """Start nothing yet."""
        self.settings = settings
        self.params = params
        self.strategy: BaseStrategy | None = None
        self.workers: list[Any] = []
        self._variables: dict[str, str] = {}
        self._must_enter = False
        # What run_remote began, and whether the rank has left its job after that.
        self._begun: dict[Any, Any] = {}
        self._ended: str | None = None

    def _make_strategy(self) -> BaseStrategy:
        params = self.params
        assert params.num_workers is None or params.num_hosts is None, (  # noqa: S101 - the public contract
            f"give num_workers ({params.num_workers}) or num_hosts ({params.num_hosts}), not both"
        )
        resources = (params.use_gpu, params.cpus_per_worker, params.gpus_per_worker)
        in_group = params.use_current_placement_group and get_current_placement_group() is not None
        if params.num_hosts is not None and in_group:
            # The group of the caller (Ray Tune) holds what there is for the workers.
            return PGStrategy(self.settings, params.num_hosts * params.num_workers_per_host, *resources)
        if params.num_hosts is not None:
            return ColocatedStrategy(self.settings, params.num_hosts, params.num_workers_per_host, *resources)
        if params.num_workers is None:
            message = "RayExecutor: give num_workers or num_hosts"
            raise ValueError(message)
        return PGStrategy(
            self.settings,
            params.num_workers,
            *resources,
            force_create_placement_group=not params.use_current_placement_group,
        )

    @property
    def _start_seconds(self) -> float:
        return float(getattr(self.settings, "placement_group_timeout_s", None) or 100)

    def start(
        self,
        executable_cls: type | None = None,
        executable_args: Sequence[Any] | None = None,
        executable_kwargs: Mapping[str, Any] | None = None,
        extra_env_vars: Mapping[str, str] | None = None,
    ) -> None:
        """Start the workers, and the user's object on each. What fails leaves nothing behind."""
        if self.workers:
            message = "RayExecutor.start: the workers run already; call shutdown() first"
            raise RuntimeError(message)
        self._variables = {name: str(value) for name, value in (extra_env_vars or {}).items()}
        timeout = getattr(self.settings, "timeout_s", None)
        if timeout:
            self._variables.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", str(int(timeout)))
        self.strategy = self._make_strategy()
        try:
            self.workers, _ = self.strategy.create_workers()
            self._share_gpus()
            self._enter()
            if executable_cls is not None:
                made = [
                    worker.start_executable.remote(executable_cls, executable_args, executable_kwargs)
                    for worker in self.workers
                ]
                raise_cause("RayExecutor.start", collect(made))
        except BaseException:
            self.shutdown()
            raise
        self._ended = None

    def _enter(self) -> None:
        """Take all workers into a new job."""
        nics = sorted(getattr(self.settings, "nics", None) or ())
        introductions = ray.get(
            [worker.introduce.remote(nics) for worker in self.workers], timeout=self._start_seconds
        )
        assignments = assign(Job.create(), introductions, variables=self._variables, nics=nics)
        entered = [worker.enter.remote(one) for worker, one in zip(self.workers, assignments, strict=True)]
        ray.get(entered, timeout=self._start_seconds)
        self._must_enter = False
        self._begun.clear()  # it has ended: a worker does one thing after the other

    def _share_gpus(self) -> None:
        """Every worker sees the GPUs of all workers of its node, as hvd.local_rank() counts them."""
        if not self.params.gpus_per_worker:
            return
        nodes = ray.get([worker.node_id.remote() for worker in self.workers])
        gpus = ray.get([worker.get_gpu_ids.remote() for worker in self.workers])
        changes = []
        for worker, node in zip(self.workers, nodes, strict=True):
            own = sorted(
                {str(gpu) for where, ids in zip(nodes, gpus, strict=True) if where == node for gpu in ids}
            )
            changes.append(worker.update_env_vars.remote({"CUDA_VISIBLE_DEVICES": ",".join(own)}))
        ray.get(changes, timeout=self._start_seconds)

    def _ready(self, what: str) -> None:
        if not self.workers:
            reason = self._ended or "it was not started, or was shut down"
            message = f"RayExecutor.{what}: there are no workers: {reason}; call start()"
            raise RuntimeError(message)
        self._look_back()
        if self._must_enter:
            self._enter()

    def _look_back(self) -> None:
        """Find out whether a rank left its job in what run_remote began, as far as that has ended."""
        if not self._begun:
            return
        ended, _ = ray.wait(list(self._begun), num_returns=len(self._begun), timeout=0, fetch_local=False)
        for reference in ended:
            has_left = self._begun.pop(reference)
            with suppress(ray.exceptions.RayError):  # of a worker that died, which the next call says
                self._must_enter |= ray.get(has_left, timeout=self._start_seconds)

    def _submit(self, what: str, call: Callable[[Any], Any], function: Any) -> list[Any]:
        self._ready(what)
        reference = ship(f"RayExecutor.{what}", call, function)
        return [worker.execute.remote(reference) for worker in self.workers]

    def _gather(self, what: str, references: list[Any]) -> list[Any]:
        outcome = collect(references)
        if not outcome.failures:
            return [outcome.results[rank] for rank in range(len(references))]
        # The ranks that failed have left their job, the others may not have.
        self._must_enter = True
        if not outcome.workers_are_usable:
            self.shutdown()
            self._ended = f"they were stopped when {what} failed"
        raise_cause(f"RayExecutor.{what}", outcome)
        return []

    def execute(self, fn: Callable[[Any], Any], callbacks: Sequence[Callable[..., Any]] | None = None) -> Any:
        """Call `fn(executable)` on every worker."""
        del callbacks  # of elastic jobs
        return self._gather("execute", self._submit("execute", fn, fn))

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[Any]:
        """Call `fn(*args, **kwargs)` on every worker; results by rank."""
        del callbacks  # of elastic jobs
        call = Call(fn, tuple(args or ()), dict(kwargs or {}))
        return self._gather("run", self._submit("run", call, fn))

    def run_remote(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """The same without waiting: a reference for each rank."""
        call = Call(fn, tuple(args or ()), dict(kwargs or {}))
        references = self._submit("run_remote", call, fn)
        self._begun.update(
            {
                reference: worker.has_left.remote()
                for reference, worker in zip(references, self.workers, strict=True)
            }
        )
        return references

    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn(executable)` on rank 0."""
        self._ready("execute_single")
        reference = ship("RayExecutor.execute_single", fn, fn)
        return self._gather("execute_single", [self.workers[0].execute.remote(reference)])[0]

    def shutdown(self) -> None:
        """End the workers and give back what they occupied. Twice is the same as once."""
        if self.strategy is not None:
            self.strategy.shutdown()
            self.strategy = None
        self.workers = []
        self._begun.clear()
