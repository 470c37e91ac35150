"""What the driver sends to every task of a job, as plain values.

It travels inside the function that Spark sends to its tasks, so it is read before a task knows whether it
has the same horovod: nothing in it may need a module of ours to be unpickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from horovod._cluster.job import Job


@dataclass(frozen=True, slots=True)
class Order:
    """A job for its tasks. The key is not in `repr`."""

    job_name: str
    version: str
    key: bytes = field(repr=False)
    call: bytes = field(repr=False)  # function and arguments, pickled
    path: list[str]  # folders of the driver where modules of the function may be
    env: dict[str, str] = field(repr=False)
    executable: str | None
    nics: list[str]
    console: dict[str, list[tuple[str, int]]]  # addresses of the driver's console, by interface
    shows_output: bool  # whether the console wants what ranks print
    driver: dict[str, list[tuple[str, int]]] = field(default_factory=dict)  # of an elastic job

    @property
    def job(self) -> Job:
        """Name, version and key as the tasks need them for their assignments."""
        return Job(name=self.job_name, version=self.version, key=self.key)

    def to_plain(self) -> dict[str, Any]:
        """As built-in values alone."""
        return asdict(self)

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Order:
        """The reverse of `to_plain`."""
        return Order(**plain)
