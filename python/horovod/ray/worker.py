"""The actor that is one rank."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import ray

from horovod._cluster.enter import enter
from horovod._cluster.failures import call_as_rank
from horovod._cluster.job import Assignment
from horovod._cluster.rendezvous import Introduction, introduce

from . import ray_logger


def introduce_node(nics: Collection[str] = ()) -> Introduction:
    """What this process of Ray says about itself; its host is its Ray node."""
    node = ray.get_runtime_context().get_node_id()
    return introduce(node, ray.util.get_node_ip_address(), nics)


class BaseHorovodWorker:
    """Runs functions as one rank of a job. `executable` is an object of the user that lives as long."""

    executable: Any = None
    _has_left = False

    def __init__(self, world_rank: int = 0, world_size: int = 1) -> None:
        """Set what is known before the other workers are."""
        os.environ["HOROVOD_HOSTNAME"] = self.node_id()
        os.environ["HOROVOD_RANK"] = str(world_rank)
        os.environ["HOROVOD_SIZE"] = str(world_size)

    def node_id(self) -> str:
        """Ray's identity of the node."""
        node: str = ray.get_runtime_context().get_node_id()
        return node

    def hostname(self) -> str:
        """The name of the machine."""
        return socket.gethostname()

    def get_gpu_ids(self) -> list[int]:
        """The GPUs that Ray gave to this worker."""
        ids: list[int] = ray.get_gpu_ids()
        return ids

    def update_env_vars(self, env_vars: Mapping[str, Any]) -> None:
        """Set variables; values become texts."""
        os.environ.update({name: str(value) for name, value in env_vars.items()})

    def env_vars(self) -> dict[str, str]:
        """The environment of this worker."""
        return dict(os.environ)

    def introduce(self, nics: Collection[str] = ()) -> Introduction:
        """Say where this worker is, and reserve a port."""
        return introduce_node(nics)

    def enter(self, assignment: Assignment) -> None:
        """Take part in a job from the next hvd.init() on."""
        enter(assignment)
        self._has_left = False

    def has_left(self) -> bool:
        """Whether this rank has left its job, because a call raised."""
        return self._has_left

    def start_executable(
        self,
        executable_cls: type | None = None,
        executable_args: Sequence[Any] | None = None,
        executable_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the user's object."""
        if executable_cls is not None:
            self.executable = call_as_rank(
                executable_cls, *(executable_args or ()), **dict(executable_kwargs or {})
            )

    def execute(self, func: Callable[[Any], Any]) -> Any:
        """Call `func(executable)`. If it raises, the job of this rank ends, so that no peer waits."""
        try:
            return call_as_rank(func, self.executable)
        except BaseException:
            self._has_left = True
            raise

    def set_queue(self, queue: Any) -> None:
        """Where ray_logger.log sends to."""
        ray_logger.configure(queue)
