"""Life cycle of the core, and what a process can ask about its place in the job."""

from __future__ import annotations

import ctypes
import logging
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from . import _native, codes, leaving, stacks
from .allocator import tune_allocator, tuning_requested
from .communicators import comm_address, gather_sets, is_communicator, ranks_within
from .elastic import news
from .errors import PRECONDITION_ERROR, REMOVED, HorovodInternalError
from .exchange import find_exchange
from .packaged_nccl import name_packaged_nccl
from .process_sets import (
    NOT_INITIALIZED,
    ProcessSet,
    global_process_set,
    registered_sets,
    resolve_static_sets,
)
from .schedule import requested_mode

_logger = logging.getLogger("horovod")
_DYNAMIC = "HOROVOD_DYNAMIC_PROCESS_SETS"
_INIT_TIME = "HOROVOD_GLOO_TIMEOUT_SECONDS"
_DEFAULT_INIT_SECONDS = 30


def _initialized(answer: int) -> int:
    """Return an answer of the core, which is -1 before init and after shutdown."""
    if answer < 0:
        raise ValueError(NOT_INITIALIZED)
    return answer


@dataclass(frozen=True, slots=True)
class _Members:
    """The processes that form the job: those of a communicator, some ranks, or all."""

    comm: Any = None
    ranks: tuple[int, ...] = ()

    def start(self, sets: Sequence[Sequence[int]]) -> None:
        if self.comm is None and not self.ranks:
            _native.init(None, None, sets, False, 0, find_exchange())
            return
        _native.init_mpi(comm_address(self.comm) if self.comm is not None else None, self.ranks, sets)


def _members_of(comm: object) -> _Members:
    if comm is None:
        return _Members()
    if is_communicator(comm):
        return _Members(comm=comm)
    if not isinstance(comm, Iterable):
        message = (
            "init: comm must be None, an iterable of ranks or a communicator of mpi4py, "
            f"got {type(comm).__name__}"
        )
        raise ValueError(message)  # noqa: TRY004 - type of the public API
    ranks = tuple(comm)
    if any(not isinstance(rank, int) for rank in ranks):
        message = f"init: comm must have integer ranks, got {list(ranks)}"
        raise ValueError(message)
    return _Members(ranks=ranks)


def _static_sets(process_sets: Sequence[ProcessSet] | str | None, members: _Members) -> Sequence[ProcessSet]:
    if process_sets is None:
        return ()
    if isinstance(process_sets, str):
        if process_sets.lower() != "dynamic":
            message = f"init: process_sets must be a list or 'dynamic', got {process_sets!r}"
            raise ValueError(message)
        os.environ[_DYNAMIC] = "1"
        return ()
    sets = list(process_sets)
    for index, process_set in enumerate(sets):
        if not isinstance(process_set, ProcessSet):
            message = f"init: process set {index} is {process_set!r}, expected a hvd.ProcessSet"
            raise ValueError(message)  # noqa: TRY004 - type of the public API
        if process_set.mpi_comm is not None and members.comm is None:
            message = f"init: process set {index} has an MPI communicator, which needs comm=MPI.Comm"
            raise NotImplementedError(message)
    return sets


def _start(members: _Members, sets: Sequence[Sequence[int]]) -> None:
    try:
        members.start(sets)
    except HorovodInternalError as error:
        # Ranks that do not fit together are a mistake of the caller; anything else is an event.
        if error.status == PRECONDITION_ERROR:
            raise ValueError(str(error)) from error
        if error.status == REMOVED:
            # An elastic job goes on without this worker, which has not begun: nothing is left to do.
            _logger.info("%s", error)
            raise SystemExit(0) from error
        raise


def _ranks_of_sets(members: _Members, process_sets: Sequence[ProcessSet]) -> list[tuple[int, ...]]:
    """Return the ranks of each set once: those of communicators first, other ranks' parts included."""
    of_comms = [
        list(process_set.ranks or ()) for process_set in process_sets if process_set.mpi_comm is not None
    ]
    given = [tuple(process_set.ranks or ()) for process_set in process_sets if process_set.mpi_comm is None]
    seconds = float(os.environ.get(_INIT_TIME) or _DEFAULT_INIT_SECONDS)
    known = gather_sets(members.comm, of_comms, time.monotonic() + seconds) if of_comms else []
    return list(dict.fromkeys([*known, *given]))


def _start_with(members: _Members, process_sets: Sequence[ProcessSet]) -> None:
    """Start the core with each set once; resolve_static_sets complains about the duplicates."""
    _start(members, _ranks_of_sets(members, process_sets))


def _write_place() -> None:
    """Let the environment say where this process stands now; in elastic jobs that changes."""
    os.environ.update(
        HOROVOD_RANK=str(_native.rank()),
        HOROVOD_SIZE=str(_native.size()),
        HOROVOD_LOCAL_RANK=str(_native.local_rank()),
        HOROVOD_LOCAL_SIZE=str(_native.local_size()),
        HOROVOD_CROSS_RANK=str(_native.cross_rank()),
        HOROVOD_CROSS_SIZE=str(_native.cross_size()),
    )


class HorovodBasics:
    """The calls that are the same in every front end. All instances speak of the one core."""

    HOROVOD_PROCESS_SET_ERROR_INIT = codes.PROCESS_SET_ERROR_INIT
    HOROVOD_PROCESS_SET_ERROR_DYNAMIC = codes.PROCESS_SET_ERROR_DYNAMIC
    HOROVOD_PROCESS_SET_ERROR_UNKNOWN_SET = codes.PROCESS_SET_ERROR_UNKNOWN_SET
    HOROVOD_PROCESS_SET_ERROR_FOREIGN_SET = codes.PROCESS_SET_ERROR_FOREIGN_SET
    HOROVOD_PROCESS_SET_ERROR_SHUTDOWN = codes.PROCESS_SET_ERROR_SHUTDOWN
    HOROVOD_PROCESS_SET_ERROR_EXISTING_SET = codes.PROCESS_SET_ERROR_EXISTING_SET

    Average = codes.AVERAGE
    Sum = codes.SUM
    Adasum = codes.ADASUM
    Min = codes.MIN
    Max = codes.MAX
    Product = codes.PRODUCT

    static_process_sets: Sequence[ProcessSet] = ()
    """Those of the last init that started the core."""

    def __init__(self, pkg_path: str | None = None, *args: str) -> None:
        """Accept the place of a native extension, which the original needed to find its library."""
        del pkg_path, args

    @property
    def MPI_LIB_CTYPES(self) -> ctypes.CDLL:  # noqa: N802 - name of the public API
        """The core library, for ctypes. It has the functions of hvd.h."""
        return ctypes.CDLL(_native.library_path())

    def init(
        self,
        comm: Any = None,
        process_sets: Sequence[ProcessSet] | str | None = None,
    ) -> None:
        """Start the core and wait until all ranks of the job have come.

        With MPI, `comm` says who they are: a communicator of mpi4py, or ranks of MPI_COMM_WORLD;
        without it, ranks have no effect. The process sets get their ids, the same on all ranks;
        "dynamic" allows hvd.add_process_set later. A second call without shutdown changes nothing.

        Arguments:
            comm: which processes form the job: None for all, a communicator of mpi4py,
                or ranks of MPI_COMM_WORLD.
            process_sets: ProcessSet objects to register, the same on every rank;
                "dynamic" allows add_process_set later.

        Raises:
            ValueError: ranks that were given different process sets, or sets that are
                no sets of ranks.
            HorovodInternalError: other ranks did not arrive in time.

        """
        members = _members_of(comm)
        sets = _static_sets(process_sets, members)
        for process_set in sets:
            if process_set.mpi_comm is not None:
                process_set.ranks = ranks_within(process_set.mpi_comm, members.comm)
        if not _native.is_initialized():
            requested_mode(os.environ)  # a bad value is an error at start, not in the first step
            if tuning_requested(os.environ):
                tune_allocator()
            name_packaged_nccl()
            _start_with(members, sets)
            HorovodBasics.static_process_sets = tuple(sets)
            if news.is_active():
                _write_place()
            stacks.arm()
            global_process_set.mpi_comm = members.comm
            if members.ranks and _native.mpi_threads() < 0:
                _logger.warning("init: comm=%s has no effect without MPI; all ranks take part", members.ranks)
        leaving.arm()
        size = _native.size()
        if size < 0:
            return
        global_process_set.ranks = list(range(size))
        resolve_static_sets(sets)

    def shutdown(self) -> None:
        """Stop the core; operations that other ranks wait for fail there.

        What was handed to JAX or MXNet and has not run yet is finished first.
        """
        leaving.shut_down()

    def is_initialized(self) -> bool:
        """Return whether init was called, and shutdown was not called since."""
        return _native.is_initialized()

    def start_timeline(self, file_path: str | os.PathLike[str], mark_cycles: bool = False) -> None:
        """Write the timeline to a file from now on. Needs HOROVOD_TIMELINE=DYNAMIC (or a file).

        Arguments:
            file_path: the file, written by rank 0; its folder must exist.
            mark_cycles: mark the steps of the engine too.

        Raises:
            ValueError: no `init`, or HOROVOD_TIMELINE was not set then.

        """
        self._timeline(lambda: _native.timeline_start(os.fspath(file_path), bool(mark_cycles)))

    def stop_timeline(self) -> None:
        """Close the file of the timeline.

        Raises:
            ValueError: before init and after shutdown.

        """
        self._timeline(_native.timeline_stop)

    @staticmethod
    def _timeline(call: Any) -> None:
        if not _native.is_initialized():
            raise ValueError(NOT_INITIALIZED)
        try:
            call()
        except HorovodInternalError as error:
            if error.status == PRECONDITION_ERROR:
                message = f"{error}; set HOROVOD_TIMELINE=DYNAMIC before hvd.init()"
                raise ValueError(message) from error
            raise

    def size(self) -> int:
        """Return how many processes the job has.

        Raises:
            ValueError: before init and after shutdown.

        """
        return _initialized(_native.size())

    def rank(self) -> int:
        """Return the number of this process in the job, from 0.

        Raises:
            ValueError: before init and after shutdown.

        """
        return _initialized(_native.rank())

    def local_size(self) -> int:
        """Return how many processes of the job run on this host.

        Raises:
            ValueError: before init and after shutdown.

        """
        return _initialized(_native.local_size())

    def local_rank(self) -> int:
        """Return the number of this process among those of its host.

        Raises:
            ValueError: before init and after shutdown.

        """
        return _initialized(_native.local_rank())

    def cross_size(self) -> int:
        """Return how many hosts have a process with this local rank.

        Raises:
            ValueError: before init and after shutdown.

        """
        return _initialized(_native.cross_size())

    def cross_rank(self) -> int:
        """Return the index of this host among the hosts that have a process with this local rank.

        Raises:
            ValueError: before init and after shutdown.

        """
        return _initialized(_native.cross_rank())

    def is_homogeneous(self) -> bool:
        """Return whether every host runs the same number of processes."""
        return _native.is_homogeneous()

    def mpi_threads_supported(self) -> bool:
        """Return whether MPI may be called from several threads at a time, the program's included.

        Raises:
            ValueError: MPI is not in use, or no `init`.

        """
        _initialized(_native.rank())
        threads = _native.mpi_threads()
        if threads < 0:
            message = "Horovod MPI is not enabled; the embedded engine is used"
            raise ValueError(message)
        return threads > 0

    def mpi_enabled(self) -> bool:
        """Return whether MPI has brought the ranks of this job together."""
        return _native.mpi_threads() >= 0

    def mpi_built(self) -> bool:
        """Return whether MPI can be used: it is in use, or there is an mpirun to start jobs with."""
        return self.mpi_enabled() or shutil.which("mpirun") is not None

    def gloo_enabled(self) -> bool:
        """Return True: the embedded engine, or Gloo where it is installed, needs no MPI."""
        return True

    def gloo_built(self) -> bool:
        """Return True: the embedded engine takes the place of Gloo where that is not installed."""
        return True

    def nccl_built(self) -> int:
        """Return the version code of the NCCL that GPU tensors would use, 0 if there is none."""
        return _native.nccl_version()

    def ddl_built(self) -> bool:
        """Return False: DDL is not used."""
        return False

    def ccl_built(self) -> bool:
        """Return False: oneCCL is not used."""
        return False

    def cuda_built(self) -> bool:
        """Return whether GPUs can be used: there is a driver, and it has a device."""
        return _native.device_count() > 0

    def rocm_built(self) -> bool:
        """Return False: tensors on devices go through host memory."""
        return False

    def sycl_built(self) -> bool:
        """Return False: tensors on devices go through host memory."""
        return False

    def _get_process_set_ids_and_ranks(self) -> dict[int, list[int]]:
        return registered_sets()


basics = HorovodBasics()
"""The instance that the front ends share."""
