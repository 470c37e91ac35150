"""HorovodConfig and the backend behind it: how Ray Train's workers become ranks.

The backend runs in Ray's controller, at every start and restart of the workers, and keeps nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import ray
from ray.train.backend import Backend, BackendConfig

from horovod._cluster.enter import enter
from horovod._cluster.job import Job, assign
from horovod._core import leaving
from horovod.runner.common.util.secret import make_secret_key
from horovod.runner.common.util.timeout import Timeout

from .settings import write_identity
from .worker import introduce_node

_logger = logging.getLogger("horovod.ray")
_INIT_TIME = "HOROVOD_GLOO_TIMEOUT_SECONDS"


@contextmanager
def horovod_session() -> Iterator[None]:
    """Around the train function of a worker: its rank leaves the job when the function returns.

    After an exception nothing is done: Ray ends all workers, and peers must not fail before it looks.
    """
    yield
    leaving.shut_down()


@dataclass
class HorovodConfig(BackendConfig):  # type: ignore[misc]  # Ray has no types
    """Settings of the job. `nics` and `timeout_s` (for hvd.init()) count; the others have no effect."""

    nics: set[str] | None = None
    verbose: int = 1
    key: Any = field(default=None, repr=False)
    ssh_port: int | None = None
    ssh_identity_file: str | None = None
    ssh_str: str | None = field(default=None, repr=False)
    timeout_s: int = 300
    placement_group_timeout_s: int = 100

    def __post_init__(self) -> None:
        """Do what Ray's class of this name does."""
        write_identity(self.ssh_identity_file, self.ssh_str)
        if self.key is None:
            self.key = make_secret_key()

    @property
    def start_timeout(self) -> Timeout:
        """A time-out that begins now."""
        return Timeout(self.timeout_s, "Timed out waiting for {activity}.")

    @property
    def backend_cls(self) -> type[HorovodBackend]:
        """The class that Ray Train asks for."""
        return HorovodBackend

    @property
    def train_func_context(self) -> Any:
        """What Ray Train puts around the train function."""
        return horovod_session

    def to_dict(self) -> dict[str, Any]:
        """What Ray may show; without keys."""
        return {"nics": sorted(self.nics or ()), "timeout_s": self.timeout_s, "verbose": self.verbose}


def as_horovod_config(given: Any) -> HorovodConfig:
    """The configuration of a trainer: None, ours, or Ray's own HorovodConfig, whose fields are copied."""
    if given is None:
        return HorovodConfig()
    if isinstance(given, HorovodConfig):
        return given
    if type(given).__name__ == "HorovodConfig" and type(given).__module__.startswith("ray."):
        known = {one.name for one in fields(HorovodConfig)}
        return HorovodConfig(**{name: value for name, value in vars(given).items() if name in known})
    message = f"horovod_config must be a HorovodConfig, got {type(given).__module__}.{type(given).__name__}"
    raise TypeError(message)


class HorovodBackend(Backend):  # type: ignore[misc]  # Ray has no types
    """Gives every worker its place and the job's key."""

    share_cuda_visible_devices: bool = True

    def on_start(self, worker_group: Any, backend_config: HorovodConfig) -> None:
        """Take the workers into a new job, before the train function."""
        try:
            self._enter(worker_group, backend_config)
        except Exception:
            _end(worker_group)
            raise

    def _enter(self, worker_group: Any, backend_config: HorovodConfig) -> None:
        seconds = float(backend_config.timeout_s)
        nics = sorted(backend_config.nics or ())
        introductions = ray.get(worker_group.execute_async(introduce_node, nics), timeout=seconds)
        variables = {} if _INIT_TIME in os.environ else {_INIT_TIME: str(backend_config.timeout_s)}
        assignments = assign(Job.create(), introductions, variables=variables, nics=nics)
        entered = [
            worker_group.execute_single_async(rank, enter, assignment)
            for rank, assignment in enumerate(assignments)
        ]
        ray.get(entered, timeout=seconds)


def _end(worker_group: Any) -> None:
    """End workers that did not become ranks, and give back their slots.

    Ray would keep them as long as anyone holds the error that `fit` raises.
    """
    end = getattr(worker_group, "shutdown", None)
    if end is None:
        return
    try:
        end()
    except Exception as error:  # noqa: BLE001 - of Ray; what is raised is why they are ended
        _logger.warning("the workers could not be ended: %s: %s", type(error).__name__, error)
