"""Process sets: subsets of the ranks that run collective operations among themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from . import _native
from .codes import (
    GLOBAL_PROCESS_SET,
    PROCESS_SET_ERROR_DYNAMIC,
    PROCESS_SET_ERROR_EXISTING_SET,
    PROCESS_SET_ERROR_FOREIGN_SET,
    PROCESS_SET_ERROR_INIT,
    PROCESS_SET_ERROR_SHUTDOWN,
    PROCESS_SET_ERROR_UNKNOWN_SET,
)
from .communicators import is_communicator

NOT_INITIALIZED = "Horovod has not been initialized; use hvd.init()."

_REASONS = {
    PROCESS_SET_ERROR_INIT: NOT_INITIALIZED,
    PROCESS_SET_ERROR_DYNAMIC: (
        "process sets can be added and removed after init only with "
        "HOROVOD_DYNAMIC_PROCESS_SETS=1 or hvd.init(process_sets='dynamic')"
    ),
    PROCESS_SET_ERROR_UNKNOWN_SET: "no such process set, or ranks that the job does not have",
    PROCESS_SET_ERROR_FOREIGN_SET: "this process is not a member of the process set",
    PROCESS_SET_ERROR_SHUTDOWN: "Horovod is shutting down",
    PROCESS_SET_ERROR_EXISTING_SET: "a process set with these ranks exists already",
}


def _checked(answer: int, subject: object) -> int:
    """Return an answer of the core, or raise what a negative one means."""
    if answer >= 0:
        return answer
    message = f"{subject}: {_REASONS.get(answer, f'unknown error {answer}')}"
    raise ValueError(message)


class ProcessSet:
    """Some of the ranks of the job.

    It can be used for operations once it has been given to hvd.init or hvd.add_process_set.

    Arguments:
        ranks_or_comm: global ranks of the members, or a communicator of mpi4py.

    Raises:
        ValueError: anything else was given.

    """

    process_set_id: int | None = None
    ranks: list[int] | None = None
    mpi_comm: Any = None

    def __init__(self, ranks_or_comm: Iterable[int] | Any) -> None:
        """Take the global ranks of the members, or a communicator of mpi4py.

        The ranks of a communicator are known after hvd.init, which needs comm=MPI.Comm then.
        """
        if is_communicator(ranks_or_comm):
            self.mpi_comm = ranks_or_comm
            return
        if not isinstance(ranks_or_comm, Iterable):
            message = (
                "a process set needs an iterable of ranks or a communicator of mpi4py, "
                f"got {type(ranks_or_comm).__name__}"
            )
            raise ValueError(message)  # noqa: TRY004 - type of the public API
        ranks = list(ranks_or_comm)
        wrong = [rank for rank in ranks if not isinstance(rank, int)]
        if wrong:
            message = f"a process set needs integer ranks, got {wrong[0]!r} in {ranks}"
            raise ValueError(message)
        self.ranks = sorted(ranks)

    @staticmethod
    def with_id(process_set_id: int) -> ProcessSet:
        """Make an object that knows its id alone."""
        made = ProcessSet(())
        made.process_set_id = process_set_id
        made.ranks = None
        return made

    def _invalidate(self) -> None:
        self.process_set_id = None

    def size(self) -> int | None:
        """Return how many ranks the set has; None while it is not registered."""
        if self.process_set_id is None:
            return None
        return _checked(_native.process_set_size(self.process_set_id), self)

    def rank(self) -> int | None:
        """Return the rank of this process in the set; None while it is not registered."""
        if self.process_set_id is None:
            return None
        return _checked(_native.process_set_rank(self.process_set_id), self)

    def included(self) -> bool | None:
        """Return whether this process is a member; None if the ranks are not known."""
        if self.ranks is None:
            return None
        rank = _native.rank()
        if rank < 0:
            raise ValueError(NOT_INITIALIZED)
        return rank in self.ranks

    def __str__(self) -> str:
        """Show what is known; programs parse this text."""
        return (
            f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks}, mpi_comm={self.mpi_comm})"
        )

    __repr__ = __str__


global_process_set = ProcessSet(())
global_process_set.process_set_id = GLOBAL_PROCESS_SET


# Objects by id, for those who must register them again in another world.
_registered: dict[int, ProcessSet] = {}


def registered_objects() -> list[ProcessSet]:
    """Return the sets that are registered besides the global one, in the order of their ids."""
    return [made for number, made in sorted(_registered.items()) if made.process_set_id == number]


def forget_registered() -> None:
    """Take their ids from all objects: the world that they belonged to is gone."""
    for process_set in registered_objects():
        process_set._invalidate()  # noqa: SLF001 - part of the public contract of this module
    _registered.clear()


def registered_id(process_set: ProcessSet) -> int:
    """Return the id that the core knows the set by."""
    process_set_id = process_set.process_set_id
    if process_set_id is None:
        message = f"{process_set} is not registered; give it to hvd.init or hvd.add_process_set"
        raise ValueError(message)
    return process_set_id


def add_process_set(process_set: ProcessSet | Sequence[int]) -> ProcessSet:
    """Register a set on all ranks, members or not, and return it.

    Blocks until every rank has called it; all ranks add and remove sets in the same order.

    Arguments:
        process_set: a ProcessSet, or the global ranks of its members.

    Raises:
        ValueError: the ranks are registered already or do not exist, sets are not dynamic,
            or no `init`.
        NotImplementedError: the set has an MPI communicator.

    """
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.mpi_comm is not None:
        message = "process sets of MPI communicators cannot be added after init"
        raise NotImplementedError(message)
    if not _native.is_initialized():
        raise ValueError(NOT_INITIALIZED)
    number = _checked(_native.process_set_add(process_set.ranks or []), process_set)
    process_set.process_set_id = number
    _registered[number] = process_set
    return process_set


def remove_process_set(process_set: ProcessSet) -> bool:
    """Take a set away on all ranks; False for one that is not registered and for the global set.

    Operations of the set that are under way fail.

    Arguments:
        process_set: one that add_process_set or init has registered.

    Raises:
        ValueError: sets are not dynamic, or no `init`.

    """
    process_set_id = process_set.process_set_id
    if process_set_id is None or process_set_id == GLOBAL_PROCESS_SET:
        return False
    if not _native.is_initialized():
        raise ValueError(NOT_INITIALIZED)
    subject = str(process_set)
    _registered.pop(process_set_id, None)
    process_set._invalidate()  # noqa: SLF001 - part of the public contract of this module
    answer = _native.process_set_remove(process_set_id)
    if answer == PROCESS_SET_ERROR_UNKNOWN_SET:
        return False
    _checked(answer, subject)
    return True


def registered_sets() -> dict[int, list[int]]:
    """Return the ranks of every set by id; the global set is 0."""
    if not _native.is_initialized():
        raise ValueError(NOT_INITIALIZED)
    return {set_id: _native.process_set_ranks(set_id) for set_id in _native.process_set_ids()}


def resolve_static_sets(process_sets: Sequence[ProcessSet]) -> None:
    """Give the sets of an init call the ids they got.

    Raises ValueError for a set that equals the global set or an earlier one of the list; that
    object stays unregistered, the others are usable.
    """
    ids = {tuple(ranks): set_id for set_id, ranks in registered_sets().items()}
    taken = {GLOBAL_PROCESS_SET}
    duplicate = None
    for index, process_set in enumerate(process_sets):
        if process_set.mpi_comm is not None and not process_set.ranks:
            continue  # of a communicator that this process has no part in
        set_id = ids.get(tuple(process_set.ranks or ()))
        if set_id is None:
            message = f"process set {index} of init is not known to the running job: {process_set}"
            raise ValueError(message)
        if set_id in taken:
            process_set._invalidate()  # noqa: SLF001 - part of the public contract of this module
            duplicate = index if duplicate is None else duplicate
            continue
        taken.add(set_id)
        process_set.process_set_id = set_id
        _registered[set_id] = process_set
    if duplicate is not None:
        message = (
            f"process set {duplicate} of init is a duplicate of the global set or of an earlier "
            f"set of the list: {process_sets[duplicate]}"
        )
        raise ValueError(message)
