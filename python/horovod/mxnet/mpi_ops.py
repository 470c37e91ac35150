"""The operations, and the calls about the job; named as in the original."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from horovod._core import _native
from horovod._core.average import get_average_backwards_compatibility_fun
from horovod._core.basics import HorovodBasics, basics
from horovod._core.process_sets import ProcessSet, global_process_set, registered_id

from ._errors import as_mxnet_errors
from ._framework import mx
from ._gathering import allgather, alltoall, grouped_allgather, grouped_reducescatter, reducescatter
from ._library import library
from ._push import forget_numbers
from ._reductions import (
    allreduce,
    allreduce_,
    broadcast,
    broadcast_,
    grouped_allreduce,
    grouped_allreduce_,
)

MPI_MXNET_LIB_CTYPES: ctypes.CDLL = library
"""The adapter's library; the name is that of the original."""

_basics: HorovodBasics = basics

Average = basics.Average
Sum = basics.Sum
Adasum = basics.Adasum
Min = basics.Min
Max = basics.Max
Product = basics.Product

shutdown = basics.shutdown
is_initialized = basics.is_initialized
start_timeline = basics.start_timeline
stop_timeline = basics.stop_timeline
size = basics.size
local_size = basics.local_size
cross_size = basics.cross_size
rank = basics.rank
local_rank = basics.local_rank
cross_rank = basics.cross_rank
is_homogeneous = basics.is_homogeneous
mpi_threads_supported = basics.mpi_threads_supported
mpi_enabled = basics.mpi_enabled
mpi_built = basics.mpi_built
gloo_enabled = basics.gloo_enabled
gloo_built = basics.gloo_built
nccl_built = basics.nccl_built
ddl_built = basics.ddl_built
ccl_built = basics.ccl_built
cuda_built = basics.cuda_built
rocm_built = basics.rocm_built
sycl_built = basics.sycl_built

handle_average_backwards_compatibility = get_average_backwards_compatibility_fun(basics)


def init(comm: Any = None, process_sets: Sequence[ProcessSet] | str | None = None) -> None:
    """Start the core and wait until all ranks of the job have come; see HorovodBasics.init.

    Arguments:
        comm: which processes form the job: None for all, a communicator of mpi4py, or ranks
            of MPI_COMM_WORLD.
        process_sets: ProcessSet objects to register, the same on every rank; "dynamic"
            allows add_process_set later.

    Raises:
        ValueError: ranks that were given different process sets, or sets that are no sets
            of ranks.
        HorovodInternalError: other ranks did not arrive in time.

    """
    if not basics.is_initialized():
        forget_numbers()
    basics.init(comm, process_sets)


def join() -> int:
    """Say that this rank has no more data, and wait until all have said so.

    What this rank has pushed before is finished first. Meanwhile it takes part in the allreduces of the
    others with zeros. Returns the rank that joined last.
    """
    mx.nd.waitall()
    with as_mxnet_errors():
        return _native.join(None)


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Wait until all ranks of the set are here.

    Arguments:
        process_set: the ranks that take part, all of which must call this.

    Raises:
        ValueError: a process set that this rank is not in.
        HorovodInternalError: a lost rank, or no `init`.

    """
    with as_mxnet_errors():
        _native.barrier(registered_id(process_set), None)


__all__ = [
    "MPI_MXNET_LIB_CTYPES",
    "Adasum",
    "Average",
    "Max",
    "Min",
    "Product",
    "Sum",
    "allgather",
    "allreduce",
    "allreduce_",
    "alltoall",
    "barrier",
    "broadcast",
    "broadcast_",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "grouped_allgather",
    "grouped_allreduce",
    "grouped_allreduce_",
    "grouped_reducescatter",
    "handle_average_backwards_compatibility",
    "init",
    "is_homogeneous",
    "is_initialized",
    "join",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "reducescatter",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
    "sycl_built",
]
