"""What every kind of job behind RayExecutor offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class BaseParams:
    """What each worker needs."""

    cpus_per_worker: int = 1
    use_gpu: bool = False
    gpus_per_worker: int | None = None

    def __post_init__(self) -> None:
        """Check, and fill in the number of GPUs."""
        if self.gpus_per_worker and not self.use_gpu:
            message = f"gpus_per_worker is {self.gpus_per_worker}, but use_gpu is not set"
            raise ValueError(message)
        if self.use_gpu and self.gpus_per_worker is not None and self.gpus_per_worker < 1:
            message = f"gpus_per_worker must be 1 or more if use_gpu is set, got {self.gpus_per_worker}"
            raise ValueError(message)
        if self.gpus_per_worker is None:
            self.gpus_per_worker = int(self.use_gpu)

    @property
    def bundle(self) -> dict[str, float]:
        """The resources of one worker."""
        return {"CPU": float(self.cpus_per_worker), "GPU": float(self.gpus_per_worker or 0)}


class Adapter(ABC):
    """A job that RayExecutor drives."""

    @abstractmethod
    def start(
        self,
        executable_cls: type | None = None,
        executable_args: Sequence[Any] | None = None,
        executable_kwargs: Mapping[str, Any] | None = None,
        extra_env_vars: Mapping[str, str] | None = None,
    ) -> None:
        """Start the workers, and the user's object on each."""

    @abstractmethod
    def execute(self, fn: Callable[[Any], Any], callbacks: Sequence[Callable[..., Any]] | None = None) -> Any:
        """Call `fn(executable)` on every worker."""

    @abstractmethod
    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> list[Any]:
        """Call `fn(*args, **kwargs)` on every worker; results by rank."""

    @abstractmethod
    def run_remote(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """The same without waiting: a reference for each rank."""

    @abstractmethod
    def execute_single(self, fn: Callable[[Any], Any]) -> Any:
        """Call `fn(executable)` on rank 0."""

    @abstractmethod
    def shutdown(self) -> None:
        """End the workers and give back what they occupied."""
