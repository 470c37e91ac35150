"""The actor that is one worker of an elastic job, from its start to its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from horovod._cluster.elastic.relay import Relay, packet_pair
from horovod._cluster.elastic.seat import Seat, is_farewell, take_seat
from horovod._cluster.failures import call_as_rank

from . import ray_logger
from .worker import BaseHorovodWorker


@dataclass(frozen=True, slots=True)
class Left:
    """What a worker returns that had to go, or wanted to, before its function returned."""

    code: int


@dataclass(frozen=True, slots=True)
class Work:
    """What every worker of a job does: make the user's object, if any, and call a function with it."""

    function: Callable[[Any], Any]
    make_executable: Callable[[], Any] | None = None

    def __call__(self) -> Any:
        """Do it, in the worker."""
        executable = None if self.make_executable is None else self.make_executable()
        return self.function(executable)


class ElasticWorker(BaseHorovodWorker):
    """Has one seat; its process ends with its job."""

    def __init__(self, seat: Seat, queue: Any = None) -> None:
        """Take the seat. The variables of the user are set before anything of theirs is imported."""
        ours, theirs = packet_pair()
        take_seat(seat, theirs.detach())
        self._relay = Relay(seat, ours)
        ray_logger.configure(queue)

    def ping(self) -> None:
        """Answer: the worker has started."""

    def work(self, work: Work) -> Any:
        """Return what the function returns; Left if the worker has no place any more."""
        try:
            return call_as_rank(work)
        except BaseException as error:
            if is_farewell(error):
                return Left(0)
            if isinstance(error, SystemExit):  # Ray would end the actor without a word
                return Left(error.code if isinstance(error.code, int) else 1)
            raise
